/* SPDX-License-Identifier: Apache-2.0 */
/* The agent: console commands, the registry of benches, the sample buffer, the only printer of records. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "esp_err.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As hello tells it: of the agent and its benches, whatever program they are part of. It is that of the tool
 * whose checkout they lie in (firmware/version.txt). */
#define AGENT_VERSION "0.1.0"

/* What the agent may take over of the program that it is part of. */
typedef struct {
    bool hold_log; /* log text is held while a bench runs, and printed afterwards */
    bool
        take_network; /* `net up` initialises and connects what it needs, where no address is there already */
    bool set_clock;   /* the time of day that the host tells is set */
    bool confirm_image; /* the first command confirms an image that waits for that (an update over the air) */
} agent_config_t;

/* Start the console and the tasks of the agent, which say hello. Call it once, from app_main(). All is the
 * agent's to take. */
esp_err_t agent_start(void);

/* The same beside a program of one's own. */
esp_err_t agent_start_with(const agent_config_t *config);

/* What agent_start_with() was told; before it, that nothing is the agent's. */
const agent_config_t *agent_config(void);

/* When agent_start() was called: since the application image was started, that is without the chip's ROM and
 * boot loader, microseconds. */
int64_t agent_started_us(void);

/* How large the running image is in flash, and the slot that it lies in. ESP_ERR_NOT_SUPPORTED on a target
 * that runs from no flash. */
esp_err_t agent_image_sizes(uint32_t *image_bytes, uint32_t *slot_bytes);

/* Where the running image lies, as its linker laid it out: code and constants in flash, code in RAM,
 * variables with and without a value at the start. */
typedef struct {
    uint32_t text_bytes, rodata_bytes, iram_bytes, data_bytes, bss_bytes;
} agent_sections_t;

/* ESP_ERR_NOT_SUPPORTED on a target that is no chip. */
esp_err_t agent_sections(agent_sections_t *sections);

#ifdef __cplusplus
}
#endif
