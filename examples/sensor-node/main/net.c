/* SPDX-License-Identifier: Apache-2.0 */
#include "net.h"

#include <stdio.h>
#include <string.h>

#include "esp_event.h"
#include "esp_netif.h"
#include "esp_timer.h"
#include "esp_wifi.h"
#include "freertos/FreeRTOS.h"
#include "freertos/event_groups.h"
#include "node_log.h"
#include "sdkconfig.h"
#include "settings.h"

#define UP_BIT BIT0
#define RETRY_FIRST_MS 200
#define RETRY_LAST_MS 5000

static EventGroupHandle_t s_bits;
static esp_timer_handle_t s_retry;
static uint32_t s_retry_ms = RETRY_FIRST_MS;
static esp_netif_t *s_netif;

static void try_again(void *arg) {
    (void)arg;
    esp_wifi_connect();
}

static void on_lost(const wifi_event_sta_disconnected_t *event) {
    xEventGroupClearBits(s_bits, UP_BIT);
    node_log("net", "lost reason=%d retry in %u ms", event->reason, (unsigned)s_retry_ms);
    esp_timer_stop(s_retry);
    ESP_ERROR_CHECK(esp_timer_start_once(s_retry, s_retry_ms * 1000ULL));
    s_retry_ms = s_retry_ms * 2 > RETRY_LAST_MS ? RETRY_LAST_MS : s_retry_ms * 2;
}

static void on_wifi(void *arg, esp_event_base_t base, int32_t id, void *data) {
    (void)arg;
    (void)base;
    switch (id) {
    case WIFI_EVENT_STA_START:
        esp_wifi_connect();
        break;
    case WIFI_EVENT_STA_CONNECTED:
        node_log("net", "joined channel=%d", ((wifi_event_sta_connected_t *)data)->channel);
        break;
    case WIFI_EVENT_STA_DISCONNECTED:
        on_lost(data);
        break;
    default:
        break;
    }
}

static void on_address(void *arg, esp_event_base_t base, int32_t id, void *data) {
    (void)arg;
    (void)base;
    (void)id;
    const ip_event_got_ip_t *event = data;
    wifi_ap_record_t ap = {0};
    esp_wifi_sta_get_ap_info(&ap);
    node_log("net", "got ip " IPSTR " rssi=%d", IP2STR(&event->ip_info.ip), ap.rssi);
    s_retry_ms = RETRY_FIRST_MS;
    xEventGroupSetBits(s_bits, UP_BIT);
}

static void configure(const char *ssid) {
    wifi_config_t config = {.sta = {.scan_method = WIFI_FAST_SCAN}};
    char password[sizeof config.sta.password + 1];
    settings_get("wifi", "password", CONFIG_NODE_WIFI_PASSWORD, password, sizeof password);
    memcpy(config.sta.ssid, ssid, strnlen(ssid, sizeof config.sta.ssid));
    memcpy(config.sta.password, password, strnlen(password, sizeof config.sta.password));
    config.sta.threshold.authmode = password[0] == '\0' ? WIFI_AUTH_OPEN : WIFI_AUTH_WPA2_PSK;
    ESP_ERROR_CHECK(esp_wifi_set_mode(WIFI_MODE_STA));
    ESP_ERROR_CHECK(esp_wifi_set_config(WIFI_IF_STA, &config));
}

void net_start(void) {
    char ssid[33];
    const esp_timer_create_args_t retry = {.callback = try_again, .name = "wifi_retry"};
    const wifi_init_config_t init = WIFI_INIT_CONFIG_DEFAULT();
    s_bits = xEventGroupCreate();
    ESP_ERROR_CHECK(esp_timer_create(&retry, &s_retry));
    ESP_ERROR_CHECK(esp_netif_init());
    ESP_ERROR_CHECK(esp_event_loop_create_default());
    s_netif = esp_netif_create_default_wifi_sta();
    ESP_ERROR_CHECK(esp_wifi_init(&init));
    ESP_ERROR_CHECK(esp_event_handler_register(WIFI_EVENT, ESP_EVENT_ANY_ID, on_wifi, NULL));
    ESP_ERROR_CHECK(esp_event_handler_register(IP_EVENT, IP_EVENT_STA_GOT_IP, on_address, NULL));
    settings_get("wifi", "ssid", CONFIG_NODE_WIFI_SSID, ssid, sizeof ssid);
    if (ssid[0] == '\0') {
        node_log("net", "no network: set wifi <ssid> <password>, then reboot");
        return;
    }
    configure(ssid);
    ESP_ERROR_CHECK(esp_wifi_set_ps(WIFI_PS_NONE));
    ESP_ERROR_CHECK(esp_wifi_start());
    node_log("net", "looking for %s", ssid);
}

void net_wait(void) {
    xEventGroupWaitBits(s_bits, UP_BIT, pdFALSE, pdTRUE, portMAX_DELAY);
}

bool net_is_up(void) {
    return (xEventGroupGetBits(s_bits) & UP_BIT) != 0;
}

void net_address(char *out, size_t out_bytes) {
    esp_netif_ip_info_t info = {0};
    if (net_is_up() && esp_netif_get_ip_info(s_netif, &info) == ESP_OK) {
        snprintf(out, out_bytes, IPSTR, IP2STR(&info.ip));
    } else {
        snprintf(out, out_bytes, "-");
    }
}
