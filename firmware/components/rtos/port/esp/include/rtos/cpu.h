/* SPDX-License-Identifier: Apache-2.0 */
/* The core that runs this, and its cycle counter. */
#pragma once

#include "esp_cpu.h"
#include "sdkconfig.h"

#define RTOS_CPU_MHZ CONFIG_ESP_DEFAULT_CPU_FREQ_MHZ
