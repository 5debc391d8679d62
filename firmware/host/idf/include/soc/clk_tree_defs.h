/* SPDX-License-Identifier: Apache-2.0 */
/* Of the clocks that a chip has, those that firmware names. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    GPTIMER_CLK_SRC_APB = 4,
    GPTIMER_CLK_SRC_DEFAULT = GPTIMER_CLK_SRC_APB,
} soc_periph_gptimer_clk_src_t;

#ifdef __cplusplus
}
#endif
