/* SPDX-License-Identifier: Apache-2.0 */
/* host/idf keeps nothing in its NVS. */
#include "private.h"

static esp_err_t open_storage(cost_t *cost) {
    return bench_fail(cost->samples, BENCH_OWNER_CONFIGURATION, ESP_ERR_NOT_SUPPORTED, "a host has no NVS");
}

static bool repeat_storage(cost_t *cost) {
    (void)cost;
    return false;
}

const cost_part_t cost_nvs_commit = {.open = open_storage, .repeat = repeat_storage};
