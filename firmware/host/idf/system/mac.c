/* SPDX-License-Identifier: Apache-2.0 */
#include "esp_mac.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "vboard.h"

#define MAC_BYTES 6U

static pthread_mutex_t s_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    uint8_t address[MAC_BYTES];
    bool is_set;
} s_own[ESP_MAC_BASE + 1]; /* by type */

/* What is added to the base address, as with four universal addresses; -1 for what the host has not. */
static int offset_of(esp_mac_type_t type) {
    switch (type) {
    case ESP_MAC_BASE:
    case ESP_MAC_WIFI_STA:
        return 0;
    case ESP_MAC_WIFI_SOFTAP:
        return 1;
    case ESP_MAC_BT:
        return 2;
    case ESP_MAC_ETH:
        return 3;
    default:
        return -1;
    }
}

esp_err_t esp_read_mac(uint8_t *mac, esp_mac_type_t type) {
    int offset = offset_of(type);
    bool factory = type == ESP_MAC_EFUSE_FACTORY;
    if (mac == NULL || (offset < 0 && !factory)) {
        return mac == NULL ? ESP_ERR_INVALID_ARG : ESP_ERR_NOT_SUPPORTED;
    }
    pthread_mutex_lock(&s_lock);
    bool own = !factory && s_own[type].is_set;
    bool own_base = !factory && s_own[ESP_MAC_BASE].is_set;
    const uint8_t *base = own_base ? s_own[ESP_MAC_BASE].address : vboard()->mac;
    memcpy(mac, own ? s_own[type].address : base, MAC_BYTES);
    pthread_mutex_unlock(&s_lock);
    mac[MAC_BYTES - 1] = (uint8_t)(mac[MAC_BYTES - 1] + (own || factory ? 0 : offset));
    return ESP_OK;
}

esp_err_t esp_iface_mac_addr_set(const uint8_t *mac, esp_mac_type_t type) {
    if (mac == NULL || type == ESP_MAC_EFUSE_FACTORY || type == ESP_MAC_EFUSE_CUSTOM) {
        return ESP_ERR_INVALID_ARG;
    }
    if (offset_of(type) < 0) {
        return ESP_ERR_NOT_SUPPORTED;
    }
    if (type == ESP_MAC_BASE && (mac[0] & 1) != 0) {
        return ESP_ERR_INVALID_ARG; /* a base address is no group's */
    }
    pthread_mutex_lock(&s_lock);
    memcpy(s_own[type].address, mac, MAC_BYTES);
    s_own[type].is_set = true;
    pthread_mutex_unlock(&s_lock);
    return ESP_OK;
}

esp_err_t esp_base_mac_addr_set(const uint8_t *mac) {
    return esp_iface_mac_addr_set(mac, ESP_MAC_BASE);
}

esp_err_t esp_base_mac_addr_get(uint8_t *mac) {
    return esp_read_mac(mac, ESP_MAC_BASE);
}

esp_err_t esp_efuse_mac_get_default(uint8_t *mac) {
    return esp_read_mac(mac, ESP_MAC_EFUSE_FACTORY);
}

size_t esp_mac_addr_len_get(esp_mac_type_t type) {
    return offset_of(type) >= 0 || type == ESP_MAC_EFUSE_FACTORY ? MAC_BYTES : 0;
}
