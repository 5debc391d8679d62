/* SPDX-License-Identifier: Apache-2.0 */
/* As much of ESP-IDF's Wi-Fi, network interface and event API as link/esp/station.c uses; the test plays the
 * driver. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "esp_bit_defs.h"
#include "esp_err.h"
#include "esp_event_base.h"

typedef enum { WIFI_IF_STA } wifi_interface_t;
typedef enum { WIFI_MODE_STA } wifi_mode_t;
typedef enum { WIFI_STORAGE_RAM } wifi_storage_t;
typedef enum { WIFI_PS_NONE } wifi_ps_type_t;
enum { WIFI_ALL_CHANNEL_SCAN = 1, WIFI_CONNECT_AP_BY_SIGNAL = 0, WIFI_AUTH_OPEN = 0, WIFI_AUTH_WPA2_PSK = 3 };
enum { WIFI_EVENT_STA_START = 2, WIFI_EVENT_STA_DISCONNECTED = 5, IP_EVENT_STA_GOT_IP = 0 };

typedef struct {
    int unused;
} wifi_init_config_t;
#define WIFI_INIT_CONFIG_DEFAULT()                                                                           \
    { 0 }

typedef struct {
    struct {
        uint8_t ssid[32];
        uint8_t password[64];
        int scan_method;
        int sort_method;
        struct {
            int authmode;
        } threshold;
    } sta;
} wifi_config_t;

typedef struct {
    uint8_t reason;
} wifi_event_sta_disconnected_t;
typedef struct {
    uint32_t addr;
} esp_ip4_addr_t;
typedef struct {
    struct {
        esp_ip4_addr_t ip;
    } ip_info;
} ip_event_got_ip_t;
typedef struct esp_netif esp_netif_t;

extern esp_event_base_t const WIFI_EVENT;
extern esp_event_base_t const IP_EVENT;

esp_err_t esp_event_loop_create_default(void);
esp_err_t esp_event_handler_register(esp_event_base_t base, int32_t id, esp_event_handler_t handler,
                                     void *context);
esp_err_t esp_netif_init(void);
esp_netif_t *esp_netif_create_default_wifi_sta(void);
char *esp_ip4addr_ntoa(const esp_ip4_addr_t *address, char *text, int size);
esp_err_t esp_wifi_init(const wifi_init_config_t *config);
esp_err_t esp_wifi_set_storage(wifi_storage_t storage);
esp_err_t esp_wifi_set_mode(wifi_mode_t mode);
esp_err_t esp_wifi_set_config(wifi_interface_t interface, wifi_config_t *config);
esp_err_t esp_wifi_start(void);
esp_err_t esp_wifi_stop(void);
esp_err_t esp_wifi_connect(void);
esp_err_t esp_wifi_disconnect(void);
esp_err_t esp_wifi_set_ps(wifi_ps_type_t mode);
