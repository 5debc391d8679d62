/* SPDX-License-Identifier: Apache-2.0 */
/* The station's network interface. */
#pragma once
#include "esp_netif.h"
#include "esp_wifi_types.h"

#ifdef __cplusplus
extern "C" {
#endif

esp_netif_t *esp_netif_create_default_wifi_sta(void);
esp_netif_t *esp_netif_create_wifi(wifi_interface_t wifi_if,
                                   const esp_netif_inherent_config_t *esp_netif_config);
void esp_netif_destroy_default_wifi(void *esp_netif);
esp_err_t esp_wifi_set_default_wifi_sta_handlers(void);
esp_err_t esp_wifi_clear_default_wifi_driver_and_handlers(void *esp_netif);

#ifdef __cplusplus
}
#endif
