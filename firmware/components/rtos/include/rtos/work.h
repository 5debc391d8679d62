/* SPDX-License-Identifier: Apache-2.0 */
/* Work that keeps a core busy for a known time: a kernel in the manner of Whetstone (Curnow and Wichmann,
 * 1976), single-precision and integer arithmetic in equal parts, no memory to speak of. */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Do so many rounds. */
void rtos_work(uint32_t loops);

/* Rounds in a millisecond on the core that the caller is pinned to: the median of several stretches, 60 ms in
 * all. The caller outranks whatever else may run there. */
uint32_t rtos_work_calibrate(void);

#ifdef __cplusplus
}
#endif
