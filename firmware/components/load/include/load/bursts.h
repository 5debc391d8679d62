/* SPDX-License-Identifier: Apache-2.0 */
/* A run longer than the sample buffer, in bursts. */
#pragma once

#include <stddef.h>

#include "agent/samples.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Rows of a burst: no more than the sample buffer takes, no more than the run has. */
size_t load_burst_capacity(const bench_samples_t *samples, int64_t rows);

/* Measures one burst; `warmup_rows` is 0 in all but the first. */
typedef esp_err_t (*load_burst_t)(void *context, size_t rows, size_t warmup_rows);

/* Measure `rows` rows, no more than `capacity` at a time, and send each burst but the last. */
esp_err_t load_bursts_run(bench_samples_t *samples, size_t capacity, size_t rows, size_t warmup_rows,
                          load_burst_t measure, void *context);

#ifdef __cplusplus
}
#endif
