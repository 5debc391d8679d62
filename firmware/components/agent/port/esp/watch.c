/* SPDX-License-Identifier: Apache-2.0 */
/* There is no host. On the linux target there is one, which nobody watches: nothing is measured there. */
#include "agent/watch.h"

void bench_watch_begin(void) {
}

void bench_watch_end(bench_samples_t *samples) {
    (void)samples;
}

uint32_t bench_watch_late_us(BaseType_t core, int64_t from_us, int64_t until_us) {
    (void)core;
    (void)from_us;
    (void)until_us;
    return 0;
}
