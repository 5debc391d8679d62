/* SPDX-License-Identifier: Apache-2.0 */
/* What the agent knows of a bench. Of this firmware's own the build makes a table (bench_table.cmake); a
 * bench in a product's component registers itself by HIL_BENCH (esp_hil.h): a pointer in the linker's section
 * `hil_benches`, which the agent reads from its start to its end.
 */
#pragma once

#include "bench.h"

typedef struct {
    const bench_t *bench;
    const char *ruler_hash; /* SHA-256 over agent, load, mqtt_link and the bench's own: what measures */
} bench_entry_t;
