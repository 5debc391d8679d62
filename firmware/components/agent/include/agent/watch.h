/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the host under a virtual board kept its tasks from running: what was measured meanwhile is void.
 *
 * On a chip there is no host: nothing is ever late, and all of this costs nothing. On a host a thread above
 * all tasks wakes on each core twice a millisecond and notes when it was late itself; no task of the firmware
 * can be the cause of that.
 */
#pragma once

#include "bench.h"
#include "freertos/FreeRTOS.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Watch from here until bench_watch_end(), which tells host_late_max_us and host_late_count in the
 * environment of the burst being filled (host only). Call both from run()'s own task, outside the measured
 * stretch; a second begin starts anew. */
void bench_watch_begin(void);
void bench_watch_end(bench_samples_t *samples);

/* How late the host was at worst between two moments of esp_timer on a core (tskNO_AFFINITY: on any), us; 0
 * on a chip, and below 100 us on a host. For the stretch that is, or was last, watched: a spell that is not
 * over yet is not known. */
uint32_t bench_watch_late_us(BaseType_t core, int64_t from_us, int64_t until_us);

#ifdef __cplusplus
}
#endif
