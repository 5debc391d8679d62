/* SPDX-License-Identifier: Apache-2.0 */
/* NVS: a number stored and committed. */
#include <stdlib.h>

#include "nvs.h"
#include "nvs_flash.h"
#include "private.h"

static esp_err_t open_storage(cost_t *cost) {
    nvs_handle_t *handle = calloc(1, sizeof(*handle));
    cost->own = handle;
    esp_err_t err = handle == NULL ? ESP_ERR_NO_MEM : nvs_flash_init();
    err = err == ESP_OK ? nvs_open("cost", NVS_READWRITE, handle) : err;
    return err == ESP_OK ? ESP_OK
                         : bench_fail(cost->samples, BENCH_OWNER_FIRMWARE, err, "NVS cannot be opened: %s",
                                      esp_err_to_name(err));
}

static bool repeat_storage(cost_t *cost) {
    nvs_handle_t *handle = cost->own;
    cost_mark(&cost->begin);
    esp_err_t err = nvs_set_u32(*handle, "number", cost->number);
    err = err == ESP_OK ? nvs_commit(*handle) : err;
    cost_mark(&cost->end);
    return err == ESP_OK;
}

static void close_storage(cost_t *cost) {
    nvs_handle_t *handle = cost->own;
    if (handle != NULL && *handle != 0) {
        nvs_close(*handle);
    }
    free(handle);
}

const cost_part_t cost_nvs_commit = {.open = open_storage, .repeat = repeat_storage, .close = close_storage};
