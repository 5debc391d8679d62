/* SPDX-License-Identifier: Apache-2.0 */
/* The agent: console commands, the registry of benches, the sample buffer, the only printer of records. */
#pragma once

#include <stdint.h>

#include "esp_err.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Start the console and the tasks of the agent and say hello. Call it once, from app_main(). */
esp_err_t agent_start(void);

/* When agent_start() was called: since the application image was started, that is without the chip's ROM and
 * boot loader, microseconds. */
int64_t agent_started_us(void);

/* How large the running image is in flash, and the slot that it lies in. ESP_ERR_NOT_SUPPORTED on a target
 * that runs from no flash. */
esp_err_t agent_image_sizes(uint32_t *image_bytes, uint32_t *slot_bytes);

#ifdef __cplusplus
}
#endif
