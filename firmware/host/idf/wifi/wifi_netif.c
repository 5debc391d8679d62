/* SPDX-License-Identifier: Apache-2.0 */
/* The station's interface follows the station's events. */
#include <stdlib.h>

#include "esp_event.h"
#include "esp_log.h"
#include "esp_wifi.h"

static esp_netif_t *s_station;

static void follow(void *argument, esp_event_base_t base, int32_t id, void *data) {
    (void)argument;
    if (s_station == NULL) {
        return;
    }
    if (id == WIFI_EVENT_STA_START) {
        esp_netif_action_start(s_station, base, id, data);
    } else if (id == WIFI_EVENT_STA_CONNECTED) {
        esp_netif_action_connected(s_station, base, id, data);
    } else if (id == WIFI_EVENT_STA_DISCONNECTED) {
        esp_netif_action_disconnected(s_station, base, id, data);
    } else if (id == WIFI_EVENT_STA_STOP) {
        esp_netif_action_stop(s_station, base, id, data);
    }
}

esp_err_t esp_wifi_set_default_wifi_sta_handlers(void) {
    return esp_event_handler_register(WIFI_EVENT, ESP_EVENT_ANY_ID, follow, NULL);
}

esp_err_t esp_wifi_clear_default_wifi_driver_and_handlers(void *esp_netif) {
    if (esp_netif == NULL || esp_netif != s_station) {
        return ESP_ERR_INVALID_ARG;
    }
    s_station = NULL;
    return esp_event_handler_unregister(WIFI_EVENT, ESP_EVENT_ANY_ID, follow);
}

esp_netif_t *esp_netif_create_wifi(wifi_interface_t wifi_if,
                                   const esp_netif_inherent_config_t *esp_netif_config) {
    const esp_netif_config_t config = {.base = esp_netif_config};
    if (wifi_if != WIFI_IF_STA) {
        ESP_LOGE("wifi_init_default", "the host has a station only");
        return NULL;
    }
    s_station = esp_netif_new(&config);
    return s_station;
}

esp_netif_t *esp_netif_create_default_wifi_sta(void) {
    const esp_netif_inherent_config_t config = ESP_NETIF_INHERENT_DEFAULT_WIFI_STA();
    esp_netif_t *station = esp_netif_create_wifi(WIFI_IF_STA, &config);
    if (station == NULL) { /* as ESP-IDF's: one of the kind */
        ESP_LOGE("wifi_init_default", "the default station exists already, or there is no memory");
        abort();
    }
    ESP_ERROR_CHECK(esp_wifi_set_default_wifi_sta_handlers());
    return station;
}

void esp_netif_destroy_default_wifi(void *esp_netif) {
    if (esp_netif != NULL) {
        (void)esp_wifi_clear_default_wifi_driver_and_handlers(esp_netif);
        esp_netif_destroy(esp_netif);
    }
}
