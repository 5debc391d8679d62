/* SPDX-License-Identifier: Apache-2.0 */
/* A Wi-Fi station, with its events, on the host's interface (esp_netif.h). What the air is like the board
 * says: VBOARD_AP, VBOARD_AP_PASSWORD and VBOARD_RSSI_DBM (docs/explain/host-idf.md). No access point of its
 * own, no enterprise authentication, no power save. */
#pragma once
#include "esp_err.h"
#include "esp_event.h"
#include "esp_netif.h"
#include "esp_wifi_default.h"
#include "esp_wifi_types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ESP_ERR_WIFI_BASE 0x3000
#define ESP_ERR_WIFI_NOT_INIT (ESP_ERR_WIFI_BASE + 1)
#define ESP_ERR_WIFI_NOT_STARTED (ESP_ERR_WIFI_BASE + 2)
#define ESP_ERR_WIFI_NOT_STOPPED (ESP_ERR_WIFI_BASE + 3)
#define ESP_ERR_WIFI_IF (ESP_ERR_WIFI_BASE + 4)
#define ESP_ERR_WIFI_MODE (ESP_ERR_WIFI_BASE + 5)
#define ESP_ERR_WIFI_STATE (ESP_ERR_WIFI_BASE + 6)
#define ESP_ERR_WIFI_CONN (ESP_ERR_WIFI_BASE + 7)
#define ESP_ERR_WIFI_NVS (ESP_ERR_WIFI_BASE + 8)
#define ESP_ERR_WIFI_MAC (ESP_ERR_WIFI_BASE + 9)
#define ESP_ERR_WIFI_SSID (ESP_ERR_WIFI_BASE + 10)
#define ESP_ERR_WIFI_PASSWORD (ESP_ERR_WIFI_BASE + 11)
#define ESP_ERR_WIFI_TIMEOUT (ESP_ERR_WIFI_BASE + 12)
#define ESP_ERR_WIFI_WAKE_FAIL (ESP_ERR_WIFI_BASE + 13)
#define ESP_ERR_WIFI_WOULD_BLOCK (ESP_ERR_WIFI_BASE + 14)
#define ESP_ERR_WIFI_NOT_CONNECT (ESP_ERR_WIFI_BASE + 15)

#define WIFI_INIT_CONFIG_MAGIC 0x1F2F3F4F

/* The driver has no buffers here: the sizes of ESP-IDF's structure are left out. */
typedef struct {
    int nvs_enable;
    int magic;
} wifi_init_config_t;

#define WIFI_INIT_CONFIG_DEFAULT()                                                                           \
    { .nvs_enable = 1, .magic = WIFI_INIT_CONFIG_MAGIC }

esp_err_t esp_wifi_init(const wifi_init_config_t *config);
esp_err_t esp_wifi_deinit(void);
esp_err_t esp_wifi_set_mode(wifi_mode_t mode);
esp_err_t esp_wifi_get_mode(wifi_mode_t *mode);
esp_err_t esp_wifi_start(void);
esp_err_t esp_wifi_stop(void);
esp_err_t esp_wifi_restore(void);
esp_err_t esp_wifi_connect(void);
esp_err_t esp_wifi_disconnect(void);
esp_err_t esp_wifi_set_config(wifi_interface_t interface, wifi_config_t *conf);
esp_err_t esp_wifi_get_config(wifi_interface_t interface, wifi_config_t *conf);
/* The configuration stays in memory, whatever the storage. */
esp_err_t esp_wifi_set_storage(wifi_storage_t storage);
esp_err_t esp_wifi_set_ps(wifi_ps_type_t type);
esp_err_t esp_wifi_get_ps(wifi_ps_type_t *type);
esp_err_t esp_wifi_get_mac(wifi_interface_t ifx, uint8_t mac[6]);
esp_err_t esp_wifi_sta_get_ap_info(wifi_ap_record_t *ap_info);
esp_err_t esp_wifi_sta_get_rssi(int *rssi);
esp_err_t esp_wifi_scan_start(const wifi_scan_config_t *config, bool block);
esp_err_t esp_wifi_scan_stop(void);
esp_err_t esp_wifi_scan_get_ap_num(uint16_t *number);
/* At most *number records, which are forgotten with that. */
esp_err_t esp_wifi_scan_get_ap_records(uint16_t *number, wifi_ap_record_t *ap_records);
esp_err_t esp_wifi_clear_ap_list(void);

#ifdef __cplusplus
}
#endif
