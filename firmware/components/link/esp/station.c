/* SPDX-License-Identifier: Apache-2.0 */
#include "station.h"

#include <stdatomic.h>
#include <string.h>

#include "esp_check.h"
#include "esp_event.h"
#include "esp_log.h"
#include "esp_netif.h"
#include "esp_wifi.h"
#include "freertos/event_groups.h"
#include "nvs_flash.h"

static const char *TAG = "station";

enum { HAS_ADDRESS = BIT0, HAS_LEFT = BIT1, LEAVE_MS = 1000 };

static EventGroupHandle_t s_events;
static atomic_uint_fast8_t s_last_reason;
static atomic_uint s_reconnects;
static atomic_bool s_leaving;
static bool s_started;
static wifi_config_t s_applied; /* all zero where nothing is */
static char s_address[16];

static void on_disconnected(const wifi_event_sta_disconnected_t *event) {
    atomic_store(&s_last_reason, event->reason);
    if ((xEventGroupClearBits(s_events, HAS_ADDRESS) & HAS_ADDRESS) != 0) {
        atomic_fetch_add(&s_reconnects, 1);
    }
    if (atomic_load(&s_leaving)) {
        xEventGroupSetBits(s_events, HAS_LEFT);
    } else {
        esp_wifi_connect(); /* the driver scans anew, so this does not spin */
    }
}

static void on_event(void *unused, esp_event_base_t base, int32_t id, void *data) {
    (void)unused;
    if (base == WIFI_EVENT && id == WIFI_EVENT_STA_START) {
        esp_wifi_connect();
    } else if (base == WIFI_EVENT && id == WIFI_EVENT_STA_DISCONNECTED) {
        on_disconnected(data);
    } else if (base == IP_EVENT && id == IP_EVENT_STA_GOT_IP) {
        const ip_event_got_ip_t *event = data;
        esp_ip4addr_ntoa(&event->ip_info.ip, s_address, sizeof(s_address));
        xEventGroupSetBits(s_events, HAS_ADDRESS);
    }
}

/* NVS holds the PHY calibration only; credentials stay in RAM. */
static esp_err_t init_nvs(void) {
    esp_err_t err = nvs_flash_init();
    if (err == ESP_ERR_NVS_NO_FREE_PAGES || err == ESP_ERR_NVS_NEW_VERSION_FOUND) {
        ESP_RETURN_ON_ERROR(nvs_flash_erase(), TAG, "erase NVS");
        err = nvs_flash_init();
    }
    return err;
}

static esp_err_t create_events(void) {
    s_events = xEventGroupCreate();
    return s_events != NULL ? ESP_OK : ESP_ERR_NO_MEM;
}

/* The program that the agent is part of may have one already. */
static esp_err_t create_loop(void) {
    esp_err_t err = esp_event_loop_create_default();
    return err == ESP_ERR_INVALID_STATE ? ESP_OK : err;
}

static esp_err_t create_interface(void) {
    return esp_netif_create_default_wifi_sta() != NULL ? ESP_OK : ESP_ERR_NO_MEM;
}

static esp_err_t init_driver(void) {
    wifi_init_config_t config = WIFI_INIT_CONFIG_DEFAULT();
    esp_log_level_set("wifi", ESP_LOG_WARN); /* it logs the SSID as information */
    return esp_wifi_init(&config);
}

static esp_err_t keep_in_ram(void) {
    return esp_wifi_set_storage(WIFI_STORAGE_RAM);
}

static esp_err_t set_mode(void) {
    return esp_wifi_set_mode(WIFI_MODE_STA);
}

static esp_err_t register_wifi_handler(void) {
    return esp_event_handler_register(WIFI_EVENT, ESP_EVENT_ANY_ID, on_event, NULL);
}

static esp_err_t register_ip_handler(void) {
    return esp_event_handler_register(IP_EVENT, IP_EVENT_STA_GOT_IP, on_event, NULL);
}

esp_err_t station_init(void) {
    static esp_err_t (*const steps[])(void) = {
        create_events, init_nvs,    esp_netif_init, create_loop,           create_interface,
        init_driver,   keep_in_ram, set_mode,       register_wifi_handler, register_ip_handler,
    };
    static size_t done; /* most of them can be done once only: after a failure it goes on where it was */
    for (; done < sizeof(steps) / sizeof(steps[0]); done++) {
        ESP_RETURN_ON_ERROR(steps[done](), TAG, "init step %u", (unsigned)done);
    }
    return ESP_OK;
}

/* Full length is legal without a NUL in either field. */
static wifi_config_t config_of(const agent_provision_t *provision) {
    wifi_config_t config = {0};
    memcpy(config.sta.ssid, provision->ssid, strnlen(provision->ssid, sizeof(config.sta.ssid)));
    memcpy(config.sta.password, provision->psk, strnlen(provision->psk, sizeof(config.sta.password)));
    config.sta.scan_method = WIFI_ALL_CHANNEL_SCAN;
    config.sta.sort_method = WIFI_CONNECT_AP_BY_SIGNAL;
    config.sta.threshold.authmode = provision->psk[0] != '\0' ? WIFI_AUTH_WPA2_PSK : WIFI_AUTH_OPEN;
    return config;
}

static bool is_applied(const wifi_config_t *config) {
    return memcmp(config->sta.ssid, s_applied.sta.ssid, sizeof(config->sta.ssid)) == 0 &&
           memcmp(config->sta.password, s_applied.sta.password, sizeof(config->sta.password)) == 0;
}

/* End the connection, or the attempts at one: the driver takes no credentials while it connects. */
static esp_err_t leave(void) {
    atomic_store(&s_leaving, true); /* from now on nothing connects by itself */
    xEventGroupClearBits(s_events, HAS_ADDRESS | HAS_LEFT);
    ESP_RETURN_ON_ERROR(esp_wifi_disconnect(), TAG, "disconnect");
    xEventGroupWaitBits(s_events, HAS_LEFT, pdTRUE, pdTRUE, pdMS_TO_TICKS(LEAVE_MS));
    atomic_store(&s_last_reason, 0); /* it was about the old credentials */
    return ESP_OK;
}

esp_err_t station_leave(void) {
    memset(&s_applied, 0, sizeof(s_applied));
    return s_started && !atomic_load(&s_leaving) ? leave() : ESP_OK;
}

esp_err_t station_off(void) {
    if (s_started) {
        ESP_RETURN_ON_ERROR(esp_wifi_stop(), TAG, "stop");
        s_started = false; /* the next station_join() starts it */
    }
    return ESP_OK;
}

static esp_err_t apply(const wifi_config_t *config) {
    ESP_RETURN_ON_ERROR(station_leave(), TAG, "leave"); /* after a failure nothing is applied */
    wifi_config_t copy = *config;
    esp_err_t err = esp_wifi_set_config(WIFI_IF_STA, &copy);
    memset(&copy, 0, sizeof(copy));
    ESP_RETURN_ON_ERROR(err, TAG, "set config");
    atomic_store(&s_leaving, false);
    if (s_started) {
        ESP_RETURN_ON_ERROR(esp_wifi_connect(), TAG, "connect");
    } else {
        ESP_RETURN_ON_ERROR(esp_wifi_start(), TAG, "start"); /* its event connects */
        s_started = true;
    }
    s_applied = *config;
    return ESP_OK;
}

esp_err_t station_join(const agent_provision_t *provision) {
    wifi_config_t config = config_of(provision);
    esp_err_t err = s_started && is_applied(&config) ? ESP_OK : apply(&config);
    memset(&config, 0, sizeof(config));
    ESP_RETURN_ON_ERROR(err, TAG, "apply credentials");
    return esp_wifi_set_ps(WIFI_PS_NONE); /* modem sleep would add up to a beacon interval to latency */
}

bool station_started(void) {
    return s_started;
}

bool station_wait(TickType_t timeout) {
    return (xEventGroupWaitBits(s_events, HAS_ADDRESS, pdFALSE, pdTRUE, timeout) & HAS_ADDRESS) != 0;
}

uint8_t station_last_reason(void) {
    return (uint8_t)atomic_load(&s_last_reason);
}

uint32_t station_reconnects(void) {
    return atomic_load(&s_reconnects);
}

const char *station_address(void) {
    return s_events != NULL && (xEventGroupGetBits(s_events) & HAS_ADDRESS) != 0 ? s_address : "";
}
