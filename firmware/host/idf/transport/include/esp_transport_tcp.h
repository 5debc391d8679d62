/* SPDX-License-Identifier: Apache-2.0 */
// Plain TCP transport (subset of ESP-IDF's esp_transport_tcp.h).
#pragma once

#include "esp_transport.h"

esp_transport_handle_t esp_transport_tcp_init(void);
