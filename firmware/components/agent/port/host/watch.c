/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/watch.h"

#include <stdint.h>

#include "freertos/task.h"
#include "vboard.h"

void bench_watch_begin(void) {
    vboard_witness_start();
}

void bench_watch_end(bench_samples_t *samples) {
    vboard_witness_stop();
    bench_environment_int(samples, "host_late_max_us", bench_watch_late_us(tskNO_AFFINITY, 0, INT64_MAX));
    bench_environment_int(samples, "host_late_count", vboard_witness_count());
}

uint32_t bench_watch_late_us(BaseType_t core, int64_t from_us, int64_t until_us) {
    return vboard_witness_late_us(core, from_us, until_us);
}
