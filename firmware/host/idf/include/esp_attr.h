/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "esp_bit_defs.h"

/* Placement attributes: the host has one kind of memory. */
#define IRAM_ATTR
#define DRAM_ATTR
#define RTC_DATA_ATTR
#define RTC_NOINIT_ATTR
#define EXT_RAM_BSS_ATTR
#define WORD_ALIGNED_ATTR __attribute__((aligned(4)))
#define NOINLINE_ATTR __attribute__((noinline))
#define FORCE_INLINE_ATTR static inline __attribute__((always_inline))
#define DRAM_STR(str) (str)
#define __NOINIT_ATTR
