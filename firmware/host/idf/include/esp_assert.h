/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <assert.h>

#define ESP_STATIC_ASSERT static_assert
