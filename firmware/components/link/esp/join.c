/* SPDX-License-Identifier: Apache-2.0 */
#include "join.h"

#include <string.h>

#include "agent/agent.h"
#include "esp_netif.h"
#include "freertos/task.h"
#include "sdkconfig.h"
#include "tell.h"

enum { LOOK_MS = 20 };

#if CONFIG_SOC_WIFI_SUPPORTED
#include "esp_wifi.h"

/* Of a program without Wi-Fi nothing of the driver is linked for our sake. */
extern __typeof__(esp_wifi_get_mode) esp_wifi_get_mode __attribute__((weak));
extern __typeof__(esp_wifi_get_ps) esp_wifi_get_ps __attribute__((weak));
extern __typeof__(esp_wifi_sta_get_ap_info) esp_wifi_sta_get_ap_info __attribute__((weak));

static bool has_wifi(void) {
    wifi_mode_t mode;
    return esp_wifi_get_mode != NULL && esp_wifi_get_mode(&mode) == ESP_OK; /* else it is not initialised */
}

static void tell_wifi(link_environment_cb_t callback, void *context) {
    static const char *const power_saves[] = {"none", "min_modem", "max_modem"};
    wifi_ps_type_t power_save;
    wifi_ap_record_t ap;
    if (esp_wifi_get_ps != NULL && esp_wifi_get_ps(&power_save) == ESP_OK) {
        callback("power_save", power_saves[power_save <= WIFI_PS_MAX_MODEM ? power_save : WIFI_PS_MAX_MODEM],
                 context);
    }
    if (esp_wifi_sta_get_ap_info != NULL && esp_wifi_sta_get_ap_info(&ap) == ESP_OK) {
        tell_number(callback, context, "rssi_dbm", ap.rssi);
        tell_number(callback, context, "channel", ap.primary);
    }
}
#else
static bool has_wifi(void) {
    return false;
}

static void tell_wifi(link_environment_cb_t callback, void *context) {
    (void)callback, (void)context;
}
#endif

/* NULL while there is none with an address. */
static esp_netif_t *find(esp_netif_ip_info_t *info) {
    esp_netif_t *netif = esp_netif_get_default_netif();
    bool up = netif != NULL && esp_netif_is_netif_up(netif) && esp_netif_get_ip_info(netif, info) == ESP_OK;
    return up && info->ip.addr != 0 ? netif : NULL;
}

bool join_is_wanted(void) {
    esp_netif_ip_info_t info;
    return !agent_config()->take_network || find(&info) != NULL || has_wifi();
}

bool join_wait(TickType_t timeout) {
    const TickType_t began = xTaskGetTickCount();
    esp_netif_ip_info_t info;
    while (find(&info) == NULL) {
        if (xTaskGetTickCount() - began >= timeout) {
            return false;
        }
        vTaskDelay(pdMS_TO_TICKS(LOOK_MS) + 1);
    }
    return true;
}

static const char *kind_of(esp_netif_t *netif) {
    const char *key = esp_netif_get_ifkey(netif);
    if (key != NULL && strncmp(key, "WIFI_", 5) == 0) {
        return "wifi";
    }
    return key != NULL && strncmp(key, "ETH_", 4) == 0 ? "ethernet" : "other";
}

void join_environment(link_environment_cb_t callback, void *context) {
    esp_netif_ip_info_t info;
    char address[16];
    esp_netif_t *netif = find(&info);
    if (netif == NULL) {
        callback("link", "down", context);
        return;
    }
    callback("link", kind_of(netif), context);
    callback("ip", esp_ip4addr_ntoa(&info.ip, address, sizeof(address)), context);
    if (strcmp(kind_of(netif), "wifi") == 0) {
        tell_wifi(callback, context);
    }
}
