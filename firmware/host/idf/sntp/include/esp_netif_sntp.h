/* SPDX-License-Identifier: Apache-2.0 */
// ESP-IDF's way to start SNTP, and to wait for it.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/time.h>

#include "esp_err.h"
#include "esp_netif_types.h"
#include "freertos/FreeRTOS.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef void (*esp_sntp_time_cb_t)(struct timeval *tv);

#define ESP_SNTP_SERVER_LIST(...)                                                                            \
    { __VA_ARGS__ }

#define ESP_NETIF_SNTP_DEFAULT_CONFIG_MULTIPLE(servers_in_list, list_of_servers)                             \
    {                                                                                                        \
        .smooth_sync = false, .server_from_dhcp = false, .wait_for_sync = true, .start = true,               \
        .sync_cb = NULL, .renew_servers_after_new_IP = false, .ip_event_to_renew = IP_EVENT_STA_GOT_IP,      \
        .index_of_first_server = 0, .num_of_servers = (servers_in_list), .servers = list_of_servers,         \
    }

#define ESP_NETIF_SNTP_DEFAULT_CONFIG(server) ESP_NETIF_SNTP_DEFAULT_CONFIG_MULTIPLE(1, {server})

typedef struct esp_sntp_config {
    bool smooth_sync;
    bool server_from_dhcp; // refused, as with CONFIG_LWIP_DHCP_GET_NTP_SRV off
    bool wait_for_sync;
    bool start;
    esp_sntp_time_cb_t sync_cb;
    bool renew_servers_after_new_IP;
    ip_event_t ip_event_to_renew;
    size_t index_of_first_server;
    size_t num_of_servers;
    const char *servers[CONFIG_LWIP_SNTP_MAX_SERVERS];
} esp_sntp_config_t;

esp_err_t esp_netif_sntp_init(const esp_sntp_config_t *config);
esp_err_t esp_netif_sntp_start(void);
void esp_netif_sntp_deinit(void);
// ESP_ERR_TIMEOUT; ESP_ERR_NOT_FINISHED while a smooth synchronisation goes on.
esp_err_t esp_netif_sntp_sync_wait(TickType_t tout);
esp_err_t esp_netif_sntp_reachability(unsigned int index, unsigned int *reachability);

#ifdef __cplusplus
}
#endif
