/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "esp_event.h"
#include "esp_log.h"
#include "esp_netif.h"
#include "esp_netif_sntp.h"
#include "esp_sntp.h"
#include "freertos/semphr.h"

static const char *TAG = "esp_netif_sntp";

typedef struct {
    esp_sntp_time_cb_t callback;
    SemaphoreHandle_t synced;
    bool renews;
    ip_event_t renewing_event;
    size_t first;
    size_t count;
    char *servers[SNTP_MAX_SERVERS];
} service_t;

static service_t *s_service;

static void on_time(struct timeval *tv) {
    service_t *service = s_service;
    if (service != NULL && service->synced != NULL) {
        xSemaphoreGive(service->synced);
    }
    if (service != NULL && service->callback != NULL) {
        service->callback(tv);
    }
}

static void on_address(void *argument, esp_event_base_t base, int32_t id, void *data) {
    (void)argument, (void)base, (void)id, (void)data;
    for (size_t i = 0; s_service != NULL && i < s_service->count; i++) {
        esp_sntp_setservername((u8_t)(i + s_service->first), s_service->servers[i]);
    }
}

static esp_err_t renew_after_address(service_t *service, const esp_sntp_config_t *config) {
    service->first = config->index_of_first_server;
    service->renewing_event = config->ip_event_to_renew;
    for (size_t i = 0; i < config->num_of_servers; i++, service->count++) {
        service->servers[i] = config->servers[i] == NULL ? NULL : strdup(config->servers[i]);
    }
    esp_err_t err = esp_event_handler_register(IP_EVENT, (int32_t)service->renewing_event, on_address, NULL);
    service->renews = err == ESP_OK;
    return err;
}

static esp_err_t configure(const esp_sntp_config_t *config) {
    if (config->server_from_dhcp) {
        ESP_LOGE(TAG, "Tried to configure SNTP server from DHCP, while disabled. Please enable "
                      "CONFIG_LWIP_DHCP_GET_NTP_SRV");
        return ESP_ERR_INVALID_ARG;
    }
    sntp_set_time_sync_notification_cb(on_time);
    esp_sntp_setoperatingmode(ESP_SNTP_OPMODE_POLL);
    for (size_t i = 0; i < config->num_of_servers; i++) {
        esp_sntp_setservername((u8_t)i, config->servers[i]);
    }
    if (config->smooth_sync) {
        sntp_set_sync_mode(SNTP_SYNC_MODE_SMOOTH);
    }
    if (config->start) {
        esp_sntp_init();
    }
    return ESP_OK;
}

esp_err_t esp_netif_sntp_init(const esp_sntp_config_t *config) {
    if (s_service != NULL) {
        ESP_LOGE(TAG, "esp_netif_sntp already initialized");
        return ESP_ERR_INVALID_STATE;
    }
    if (config->num_of_servers > SNTP_MAX_SERVERS) {
        ESP_LOGE(TAG, "Tried to configure more servers than enabled in lwip. Please update "
                      "CONFIG_SNTP_MAX_SERVERS");
        return ESP_ERR_INVALID_ARG;
    }
    service_t *service = calloc(1, sizeof(*service));
    if (service == NULL) {
        return ESP_ERR_NO_MEM;
    }
    service->callback = config->sync_cb;
    service->synced = config->wait_for_sync ? xSemaphoreCreateBinary() : NULL;
    s_service = service;
    esp_err_t err = config->wait_for_sync && service->synced == NULL ? ESP_ERR_NO_MEM : ESP_OK;
    if (err == ESP_OK && config->renew_servers_after_new_IP && config->num_of_servers > 0) {
        err = renew_after_address(service, config);
    }
    err = err == ESP_OK ? configure(config) : err;
    if (err != ESP_OK) {
        esp_netif_sntp_deinit();
    }
    return err;
}

void esp_netif_sntp_deinit(void) {
    service_t *service = s_service;
    if (service == NULL) {
        return;
    }
    s_service = NULL;
    sntp_set_time_sync_notification_cb(NULL);
    esp_sntp_stop();
    if (service->renews) {
        esp_event_handler_unregister(IP_EVENT, (int32_t)service->renewing_event, on_address);
    }
    for (size_t i = 0; i < service->count; i++) {
        free(service->servers[i]);
    }
    if (service->synced != NULL) {
        vSemaphoreDelete(service->synced);
    }
    free(service);
}

esp_err_t esp_netif_sntp_start(void) {
    esp_sntp_stop();
    esp_sntp_init();
    return ESP_OK;
}

esp_err_t esp_netif_sntp_sync_wait(TickType_t tout) {
    if (s_service == NULL || s_service->synced == NULL) {
        return ESP_ERR_INVALID_STATE;
    }
    if (xSemaphoreTake(s_service->synced, tout) != pdTRUE) {
        return ESP_ERR_TIMEOUT;
    }
    return sntp_get_sync_mode() == SNTP_SYNC_MODE_SMOOTH &&
                   sntp_get_sync_status() == SNTP_SYNC_STATUS_IN_PROGRESS
               ? ESP_ERR_NOT_FINISHED
               : ESP_OK;
}

esp_err_t esp_netif_sntp_reachability(unsigned int index, unsigned int *reachability) {
    if (index >= SNTP_MAX_SERVERS || reachability == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    if (s_service == NULL || !esp_sntp_enabled()) {
        return ESP_ERR_INVALID_STATE;
    }
    *reachability = esp_sntp_getreachability((uint8_t)index);
    return ESP_OK;
}
