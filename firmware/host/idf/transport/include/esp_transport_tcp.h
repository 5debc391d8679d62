/* SPDX-License-Identifier: Apache-2.0 */
// Plain TCP transport (subset of ESP-IDF's esp_transport_tcp.h).
#pragma once

#include "esp_transport.h"

#ifdef __cplusplus
extern "C" {
#endif

esp_transport_handle_t esp_transport_tcp_init(void);
// Of TLS too. Not copied.
void esp_transport_tcp_set_keep_alive(esp_transport_handle_t t, esp_transport_keep_alive_t *keep_alive_cfg);

#ifdef __cplusplus
}
#endif
