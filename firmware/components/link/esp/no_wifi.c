/* SPDX-License-Identifier: Apache-2.0 */
/* A chip without Wi-Fi: it is on a cable. */
#include "esp_log.h"
#include "station.h"
#include "wifi.h"

static const char *TAG = "link";

esp_err_t wifi_up(const agent_provision_t *provision, TickType_t timeout) {
    (void)provision, (void)timeout;
    ESP_LOGE(TAG, "an " CONFIG_IDF_TARGET " has no Wi-Fi; the rack file names its cable (network:)");
    return ESP_ERR_NOT_SUPPORTED;
}

bool station_started(void) {
    return false;
}

esp_err_t station_leave(void) {
    return ESP_OK;
}

esp_err_t station_off(void) {
    return ESP_OK;
}

void wifi_environment(link_environment_cb_t callback, void *context) {
    (void)callback, (void)context;
}
