/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "esp_netif_types.h"

#define ESP_NETIF_INHERENT_DEFAULT_WIFI_STA()                                                                \
    {                                                                                                        \
        .flags = (esp_netif_flags_t)(ESP_NETIF_DHCP_CLIENT | ESP_NETIF_FLAG_GARP |                           \
                                     ESP_NETIF_FLAG_EVENT_IP_MODIFIED),                                      \
        .mac = {0}, .ip_info = NULL, .get_ip_event = IP_EVENT_STA_GOT_IP,                                    \
        .lost_ip_event = IP_EVENT_STA_LOST_IP, .if_key = "WIFI_STA_DEF", .if_desc = "sta",                   \
        .route_prio = 100, .bridge_info = NULL                                                               \
    }
