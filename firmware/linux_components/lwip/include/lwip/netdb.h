/* SPDX-License-Identifier: Apache-2.0 */
/* Name resolution under lwIP's header name: the host's own. */
#pragma once

#include <netdb.h>
