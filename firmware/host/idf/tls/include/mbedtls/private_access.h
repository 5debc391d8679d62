/* SPDX-License-Identifier: Apache-2.0 */
// How Mbed TLS calls members that its API does not promise to keep.
#pragma once

#define MBEDTLS_PRIVATE(member) private_##member
