/* SPDX-License-Identifier: Apache-2.0 */
/* footprint: how much flash the running image takes, as the board reads it from its own partition table.
 *
 *   image_bytes, slot_free_bytes   of the slot that it was started from
 */
#include "agent/agent.h"
#include "agent/bench.h"

enum { COLUMN_IMAGE, COLUMN_FREE };

static esp_err_t run(const bench_run_t *bench_run, bench_samples_t *samples) {
    (void)bench_run;
    uint32_t image_bytes = 0, slot_bytes = 0;
    esp_err_t err = agent_image_sizes(&image_bytes, &slot_bytes);
    if (err == ESP_ERR_NOT_SUPPORTED) {
        return bench_fail(samples, BENCH_OWNER_CONFIGURATION, err, "this target runs from no flash");
    }
    if (err != ESP_OK) {
        return bench_fail(samples, BENCH_OWNER_FIRMWARE, err,
                          "the running image cannot be read from its slot");
    }
    err = bench_samples_begin(samples, 1, 0);
    if (err == ESP_OK) {
        bench_samples_set(samples, 0, COLUMN_IMAGE, image_bytes);
        bench_samples_set(samples, 0, COLUMN_FREE, slot_bytes - image_bytes);
    }
    return err;
}

static const char *const COLUMNS[] = {"image_bytes", "slot_free_bytes"};

const bench_t bench_footprint = {
    .name = "footprint",
    .columns = COLUMNS,
    .column_count = sizeof(COLUMNS) / sizeof(COLUMNS[0]),
    .run = run,
};
