/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "esp_attr.h"
#include "esp_err.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef uint32_t esp_cpu_cycle_count_t;

int esp_cpu_get_core_id(void);
/* The time since reset scaled to CONFIG_ESP_DEFAULT_CPU_FREQ_MHZ, 32 bits. Of the core that the caller runs
 * on: core 1's counter is behind core 0's by VBOARD_CORE1_BEHIND_US (docs/explain/host-idf.md). */
esp_cpu_cycle_count_t esp_cpu_get_cycle_count(void);

#ifdef __cplusplus
}
#endif
