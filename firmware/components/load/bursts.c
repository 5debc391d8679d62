/* SPDX-License-Identifier: Apache-2.0 */
#include "load/bursts.h"

size_t load_burst_capacity(const bench_samples_t *samples, int64_t rows) {
    size_t capacity = bench_samples_capacity(samples);
    return (int64_t)capacity > rows ? (size_t)rows : capacity;
}

esp_err_t load_bursts_run(bench_samples_t *samples, size_t capacity, size_t rows, size_t warmup_rows,
                          load_burst_t measure, void *context) {
    size_t now = rows < capacity ? rows : capacity;
    esp_err_t err = measure(context, now, warmup_rows);
    for (size_t left = rows - now; err == ESP_OK && left > 0; left -= now) {
        err = bench_samples_burst(samples);
        now = left < capacity ? left : capacity;
        if (err == ESP_OK) {
            err = measure(context, now, 0);
        }
    }
    return err;
}
