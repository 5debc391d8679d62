/* SPDX-License-Identifier: Apache-2.0 */
#include "network.h"

#include "esp_event.h"
#include "esp_log.h"
#include "esp_netif.h"
#include "esp_wifi.h"
#include "freertos/FreeRTOS.h"
#include "freertos/event_groups.h"
#include "nvs_flash.h"

static const char *TAG = "network";

enum { HAS_ADDRESS = 1 };

static EventGroupHandle_t s_events;
static char s_address[16];

const char *network_address(void) {
    return s_address;
}

static void on_event(void *unused, esp_event_base_t base, int32_t id, void *data) {
    (void)unused;
    if (base == WIFI_EVENT && id == WIFI_EVENT_STA_START) {
        esp_wifi_connect();
    } else if (base == WIFI_EVENT && id == WIFI_EVENT_STA_DISCONNECTED) {
        ESP_LOGW(TAG, "lost the network, again");
        esp_wifi_connect();
    } else if (base == IP_EVENT && id == IP_EVENT_STA_GOT_IP) {
        const ip_event_got_ip_t *event = data;
        esp_ip4addr_ntoa(&event->ip_info.ip, s_address, sizeof(s_address));
        xEventGroupSetBits(s_events, HAS_ADDRESS);
    }
}

void network_start(void) {
    wifi_init_config_t init = WIFI_INIT_CONFIG_DEFAULT();
    wifi_config_t station = {.sta = {.ssid = "pump-house", .password = "waterworks"}};
    s_events = xEventGroupCreate();
    ESP_ERROR_CHECK(nvs_flash_init());
    ESP_ERROR_CHECK(esp_netif_init());
    ESP_ERROR_CHECK(esp_event_loop_create_default());
    esp_netif_create_default_wifi_sta();
    ESP_ERROR_CHECK(esp_wifi_init(&init));
    ESP_ERROR_CHECK(esp_event_handler_register(WIFI_EVENT, ESP_EVENT_ANY_ID, on_event, NULL));
    ESP_ERROR_CHECK(esp_event_handler_register(IP_EVENT, IP_EVENT_STA_GOT_IP, on_event, NULL));
    ESP_ERROR_CHECK(esp_wifi_set_mode(WIFI_MODE_STA));
    ESP_ERROR_CHECK(esp_wifi_set_config(WIFI_IF_STA, &station));
    ESP_ERROR_CHECK(esp_wifi_start());
    xEventGroupWaitBits(s_events, HAS_ADDRESS, pdFALSE, pdTRUE, portMAX_DELAY);
}
