/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "soc/clk_tree_defs.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef soc_periph_gptimer_clk_src_t gptimer_clock_source_t;

typedef enum {
    GPTIMER_COUNT_DOWN,
    GPTIMER_COUNT_UP,
} gptimer_count_direction_t;

#ifdef __cplusplus
}
#endif
