/* SPDX-License-Identifier: Apache-2.0 */
#include "esp_eth.h"

ESP_EVENT_DEFINE_BASE(ETH_EVENT);
