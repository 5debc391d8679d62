/* SPDX-License-Identifier: Apache-2.0 */
/* The value in the middle. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Sorts `values`; `count` is odd. */
uint32_t rtos_median(uint32_t *values, size_t count);
