/* SPDX-License-Identifier: Apache-2.0 */
/* The station's states. What is asked for is done by the task "wifi", which tells it in events, and looks
 * every 100 ms whether the carrier is still there. */
#include <stdio.h>
#include <string.h>

#include "../netif/host_interface.h"
#include "air.h"
#include "esp_event.h"
#include "esp_log.h"
#include "esp_mac.h"
#include "esp_wifi.h"
#include "freertos/queue.h"
#include "freertos/semphr.h"
#include "freertos/task.h"
#include "vboard.h"

#define TASK_PRIORITY 23
#define TASK_STACK_BYTES 6656
#define LOOK_MS 100
#define QUEUE_LENGTH 8

typedef enum {
    CONNECT,
    DISCONNECT,
    SCAN,
} request_t;

static const char *TAG = "wifi";
ESP_EVENT_DEFINE_BASE(WIFI_EVENT);

static struct {
    QueueHandle_t requests; /* NULL: not initialised */
    SemaphoreHandle_t mutex;
    TaskHandle_t task;
    wifi_mode_t mode;
    wifi_config_t config;
    wifi_ps_type_t power_save;
    bool started;
    bool connected;
    wifi_ap_record_t access_point;
    char scan_for[33]; /* empty: whatever there is */
    SemaphoreHandle_t scan_done;
    uint16_t scanned; /* records of the last scan that are not fetched yet */
} s_wifi;

static void lock(void) {
    xSemaphoreTake(s_wifi.mutex, portMAX_DELAY);
}

static void unlock(void) {
    xSemaphoreGive(s_wifi.mutex);
}

static void post(int32_t event, const void *data, size_t bytes) {
    if (esp_event_post(WIFI_EVENT, event, data, bytes, portMAX_DELAY) != ESP_OK) {
        ESP_LOGW(TAG, "event %d is lost: there is no default event loop", (int)event);
    }
}

static void tell_connected(const wifi_ap_record_t *record) {
    wifi_event_sta_connected_t event = {.channel = record->primary, .authmode = record->authmode, .aid = 1};
    event.ssid_len = (uint8_t)strnlen((const char *)record->ssid, sizeof event.ssid);
    memcpy(event.ssid, record->ssid, event.ssid_len);
    memcpy(event.bssid, record->bssid, sizeof event.bssid);
    post(WIFI_EVENT_STA_CONNECTED, &event, sizeof event);
}

static void tell_disconnected(const wifi_sta_config_t *config, wifi_err_reason_t reason) {
    wifi_event_sta_disconnected_t event = {.reason = (uint8_t)reason, .rssi = (int8_t)vboard()->rssi_dbm};
    event.ssid_len = (uint8_t)strnlen((const char *)config->ssid, sizeof event.ssid);
    memcpy(event.ssid, config->ssid, event.ssid_len);
    post(WIFI_EVENT_STA_DISCONNECTED, &event, sizeof event);
}

static void search(void) {
    lock();
    wifi_sta_config_t config = s_wifi.config.sta;
    bool useless = !s_wifi.started || s_wifi.connected;
    unlock();
    if (!useless) {
        bool found = air_refuses(&config) != WIFI_REASON_NO_AP_FOUND;
        vTaskDelay(pdMS_TO_TICKS(air_search_ms(&config, found)));
    }
}

/* A chip's driver says no such thing: hil reads it for a product that never connects. */
static void say_refused(const wifi_sta_config_t *config, wifi_err_reason_t reason) {
    if (!host_interface_runs()) {
        ESP_LOGW(TAG, "no carrier");
    } else if (reason == WIFI_REASON_NO_AP_FOUND) {
        ESP_LOGW(TAG, "no network '%.32s' in the air", (const char *)config->ssid);
    } else {
        ESP_LOGW(TAG, "another password than that of network '%.32s'", (const char *)config->ssid);
    }
}

static void connect_now(void) {
    search();
    lock();
    wifi_sta_config_t config = s_wifi.config.sta;
    bool useless = !s_wifi.started || s_wifi.connected;
    wifi_err_reason_t reason = useless ? (wifi_err_reason_t)0 : air_refuses(&config);
    s_wifi.connected = s_wifi.connected || (!useless && reason == 0);
    air_record(&config, &s_wifi.access_point);
    wifi_ap_record_t record = s_wifi.access_point;
    unlock();
    if (!useless && reason == 0) {
        ESP_LOGI(TAG, "connected with %.32s, aid = 1, channel %d, rssi: %d", (const char *)record.ssid,
                 record.primary, record.rssi);
        tell_connected(&record);
    } else if (reason != 0) {
        say_refused(&config, reason);
        tell_disconnected(&config, reason);
    }
}

static void lose(wifi_err_reason_t reason) {
    lock();
    bool was_connected = s_wifi.connected;
    wifi_sta_config_t config = s_wifi.config.sta;
    s_wifi.connected = false;
    unlock();
    if (was_connected) {
        tell_disconnected(&config, reason);
    }
}

static void scan_now(void) {
    vTaskDelay(pdMS_TO_TICKS(AIR_SCAN_MS));
    lock();
    const char *ssid = air()->ssid;
    bool other = s_wifi.scan_for[0] != '\0' && ssid != NULL && strcmp(s_wifi.scan_for, ssid) != 0;
    s_wifi.scanned = ssid != NULL && !other && host_interface_runs() ? 1 : 0;
    wifi_event_sta_scan_done_t event = {.number = (uint8_t)s_wifi.scanned, .scan_id = 0x80};
    unlock();
    post(WIFI_EVENT_SCAN_DONE, &event, sizeof event);
    (void)xSemaphoreGive(s_wifi.scan_done);
}

static void serve(void *argument) {
    (void)argument;
    for (;;) {
        request_t request;
        if (xQueueReceive(s_wifi.requests, &request, pdMS_TO_TICKS(LOOK_MS)) != pdTRUE) {
            if (s_wifi.connected && !host_interface_runs()) {
                lose(WIFI_REASON_BEACON_TIMEOUT);
            }
        } else if (request == CONNECT) {
            connect_now();
        } else if (request == SCAN) {
            scan_now();
        } else {
            lose(WIFI_REASON_ASSOC_LEAVE);
        }
    }
}

esp_err_t esp_wifi_init(const wifi_init_config_t *config) {
    if (config == NULL || config->magic != WIFI_INIT_CONFIG_MAGIC) {
        return ESP_ERR_INVALID_ARG;
    }
    if (s_wifi.requests != NULL) {
        return ESP_OK;
    }
    (void)air();
    s_wifi.requests = xQueueCreate(QUEUE_LENGTH, sizeof(request_t));
    s_wifi.mutex = xSemaphoreCreateMutex();
    s_wifi.scan_done = xSemaphoreCreateBinary();
    if (s_wifi.requests == NULL || s_wifi.mutex == NULL || s_wifi.scan_done == NULL ||
        xTaskCreatePinnedToCore(serve, "wifi", TASK_STACK_BYTES, NULL, TASK_PRIORITY, &s_wifi.task, 0) !=
            pdPASS) {
        return ESP_ERR_NO_MEM;
    }
    return ESP_OK;
}

esp_err_t esp_wifi_deinit(void) {
    if (s_wifi.requests == NULL) {
        return ESP_ERR_WIFI_NOT_INIT;
    }
    if (s_wifi.started) {
        return ESP_ERR_WIFI_NOT_STOPPED;
    }
    vTaskDelete(s_wifi.task);
    vQueueDelete(s_wifi.requests);
    vSemaphoreDelete(s_wifi.mutex);
    vSemaphoreDelete(s_wifi.scan_done);
    memset(&s_wifi, 0, sizeof s_wifi);
    return ESP_OK;
}

static esp_err_t check_init(void) {
    return s_wifi.requests != NULL ? ESP_OK : ESP_ERR_WIFI_NOT_INIT;
}

static esp_err_t check_started(void) {
    esp_err_t result = check_init();
    return result == ESP_OK && !s_wifi.started ? ESP_ERR_WIFI_NOT_STARTED : result;
}

esp_err_t esp_wifi_set_mode(wifi_mode_t mode) {
    if (check_init() != ESP_OK) {
        return ESP_ERR_WIFI_NOT_INIT;
    }
    if (mode != WIFI_MODE_STA && mode != WIFI_MODE_NULL) {
        ESP_LOGE(TAG, "the host has a station only");
        return ESP_ERR_INVALID_ARG;
    }
    s_wifi.mode = mode;
    return ESP_OK;
}

esp_err_t esp_wifi_get_mode(wifi_mode_t *mode) {
    if (check_init() != ESP_OK) {
        return ESP_ERR_WIFI_NOT_INIT;
    }
    if (mode == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    *mode = s_wifi.mode;
    return ESP_OK;
}

esp_err_t esp_wifi_start(void) {
    if (check_init() != ESP_OK) {
        return ESP_ERR_WIFI_NOT_INIT;
    }
    if (!s_wifi.started && s_wifi.mode == WIFI_MODE_STA) {
        s_wifi.started = true;
        post(WIFI_EVENT_STA_START, NULL, 0);
    }
    return ESP_OK;
}

esp_err_t esp_wifi_stop(void) {
    if (check_init() != ESP_OK) {
        return ESP_ERR_WIFI_NOT_INIT;
    }
    if (s_wifi.started) {
        lose(WIFI_REASON_ASSOC_LEAVE);
        s_wifi.started = false;
        post(WIFI_EVENT_STA_STOP, NULL, 0);
    }
    return ESP_OK;
}

esp_err_t esp_wifi_restore(void) {
    if (check_init() == ESP_OK) {
        memset(&s_wifi.config, 0, sizeof s_wifi.config);
    }
    return check_init();
}

esp_err_t esp_wifi_connect(void) {
    esp_err_t result = check_started();
    if (result != ESP_OK) {
        return result;
    }
    if (s_wifi.config.sta.ssid[0] == '\0') {
        return ESP_ERR_WIFI_SSID;
    }
    const request_t request = CONNECT;
    return xQueueSend(s_wifi.requests, &request, portMAX_DELAY) == pdTRUE ? ESP_OK : ESP_FAIL;
}

esp_err_t esp_wifi_disconnect(void) {
    esp_err_t result = check_started();
    if (result != ESP_OK) {
        return result;
    }
    const request_t request = DISCONNECT;
    return xQueueSend(s_wifi.requests, &request, portMAX_DELAY) == pdTRUE ? ESP_OK : ESP_FAIL;
}

esp_err_t esp_wifi_set_config(wifi_interface_t interface, wifi_config_t *conf) {
    if (check_init() != ESP_OK) {
        return ESP_ERR_WIFI_NOT_INIT;
    }
    if (conf == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    if (interface != WIFI_IF_STA) {
        return ESP_ERR_WIFI_IF;
    }
    if (s_wifi.mode != WIFI_MODE_STA) {
        return ESP_ERR_WIFI_MODE;
    }
    lock();
    s_wifi.config = *conf;
    unlock();
    return ESP_OK;
}

esp_err_t esp_wifi_get_config(wifi_interface_t interface, wifi_config_t *conf) {
    if (check_init() != ESP_OK) {
        return ESP_ERR_WIFI_NOT_INIT;
    }
    if (conf == NULL || interface != WIFI_IF_STA) {
        return conf == NULL ? ESP_ERR_INVALID_ARG : ESP_ERR_WIFI_IF;
    }
    *conf = s_wifi.config;
    return ESP_OK;
}

esp_err_t esp_wifi_set_storage(wifi_storage_t storage) {
    return storage == WIFI_STORAGE_FLASH || storage == WIFI_STORAGE_RAM ? check_init() : ESP_ERR_INVALID_ARG;
}

esp_err_t esp_wifi_set_ps(wifi_ps_type_t type) {
    s_wifi.power_save = type;
    return check_init();
}

esp_err_t esp_wifi_get_ps(wifi_ps_type_t *type) {
    if (type == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    *type = s_wifi.power_save;
    return check_init();
}

esp_err_t esp_wifi_get_mac(wifi_interface_t ifx, uint8_t mac[6]) {
    return ifx != WIFI_IF_STA ? ESP_ERR_WIFI_IF : esp_read_mac(mac, ESP_MAC_WIFI_STA);
}

esp_err_t esp_wifi_sta_get_ap_info(wifi_ap_record_t *ap_info) {
    if (ap_info == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    if (check_init() != ESP_OK || !s_wifi.connected) {
        return ESP_ERR_WIFI_NOT_CONNECT;
    }
    lock();
    *ap_info = s_wifi.access_point;
    unlock();
    return ESP_OK;
}

esp_err_t esp_wifi_sta_get_rssi(int *rssi) {
    if (rssi == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    if (!s_wifi.connected) {
        return ESP_FAIL;
    }
    *rssi = vboard()->rssi_dbm;
    return ESP_OK;
}

/* There is one access point to find, where the board names it. */
esp_err_t esp_wifi_scan_start(const wifi_scan_config_t *config, bool block) {
    esp_err_t result = check_started();
    if (result != ESP_OK) {
        return result;
    }
    lock();
    const char *wanted = config != NULL && config->ssid != NULL ? (const char *)config->ssid : "";
    snprintf(s_wifi.scan_for, sizeof s_wifi.scan_for, "%s", wanted);
    unlock();
    (void)xSemaphoreTake(s_wifi.scan_done, 0);
    const request_t request = SCAN;
    if (xQueueSend(s_wifi.requests, &request, portMAX_DELAY) != pdTRUE) {
        return ESP_FAIL;
    }
    if (block) {
        (void)xSemaphoreTake(s_wifi.scan_done, portMAX_DELAY);
    }
    return ESP_OK;
}

esp_err_t esp_wifi_scan_stop(void) {
    return check_started();
}

esp_err_t esp_wifi_scan_get_ap_num(uint16_t *number) {
    if (number == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    *number = s_wifi.scanned;
    return check_started();
}

esp_err_t esp_wifi_scan_get_ap_records(uint16_t *number, wifi_ap_record_t *ap_records) {
    if (number == NULL || ap_records == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    *number = *number < s_wifi.scanned ? *number : s_wifi.scanned;
    if (*number > 0) {
        air_record(&s_wifi.config.sta, ap_records);
    }
    s_wifi.scanned = 0;
    return check_started();
}

esp_err_t esp_wifi_clear_ap_list(void) {
    s_wifi.scanned = 0;
    return check_started();
}
