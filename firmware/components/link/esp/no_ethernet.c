/* SPDX-License-Identifier: Apache-2.0 */
/* A program with a cable of its own, which it brings up itself: the agent has no driver then. */
#include "esp_log.h"
#include "ethernet.h"

static const char *TAG = "link";

esp_err_t ethernet_init(const link_words_t *words) {
    ESP_LOGE(TAG, "%s: the program brings its cable up itself", link_type_name(words->type));
    return ESP_ERR_NOT_SUPPORTED;
}

esp_err_t ethernet_start(void) {
    return ESP_ERR_NOT_SUPPORTED;
}

esp_err_t ethernet_stop(void) {
    return ESP_ERR_NOT_SUPPORTED;
}

bool ethernet_started(void) {
    return false;
}

bool ethernet_wait(TickType_t timeout) {
    (void)timeout;
    return false;
}

bool ethernet_has_link(void) {
    return false;
}

uint32_t ethernet_speed_mbps(void) {
    return 0;
}

bool ethernet_is_full_duplex(void) {
    return false;
}

uint32_t ethernet_reconnects(void) {
    return 0;
}

const char *ethernet_address(void) {
    return "";
}
