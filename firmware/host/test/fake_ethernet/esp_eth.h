/* SPDX-License-Identifier: Apache-2.0 */
/* As much of ESP-IDF's Ethernet, network interface and event API as link/esp/ethernet.c uses; the test plays
 * the driver. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "esp_bit_defs.h"
#include "esp_err.h"
#include "esp_event_base.h"

typedef struct {
    int unused;
} esp_eth_mac_t;
typedef esp_eth_mac_t esp_eth_phy_t;
typedef void *esp_eth_handle_t, *esp_eth_netif_glue_handle_t;
typedef enum { ETH_SPEED_10M, ETH_SPEED_100M } eth_speed_t;
typedef enum { ETH_DUPLEX_HALF, ETH_DUPLEX_FULL } eth_duplex_t;
typedef enum { ETH_CMD_S_MAC_ADDR = 1, ETH_CMD_G_SPEED = 6, ETH_CMD_G_DUPLEX_MODE = 8 } esp_eth_io_cmd_t;
enum {
    ETHERNET_EVENT_START,
    ETHERNET_EVENT_STOP,
    ETHERNET_EVENT_CONNECTED,
    ETHERNET_EVENT_DISCONNECTED,
    IP_EVENT_ETH_GOT_IP = 4,
    IP_EVENT_ETH_LOST_IP,
};

typedef struct {
    esp_eth_mac_t *mac;
    esp_eth_phy_t *phy;
} esp_eth_config_t;
#define ETH_DEFAULT_CONFIG(the_mac, the_phy)                                                                 \
    { .mac = the_mac, .phy = the_phy }

typedef struct {
    uint32_t addr;
} esp_ip4_addr_t;
typedef struct {
    esp_ip4_addr_t ip, netmask, gw;
} esp_netif_ip_info_t;
typedef struct {
    esp_netif_ip_info_t ip_info;
} ip_event_got_ip_t;
typedef struct esp_netif esp_netif_t;
typedef struct {
    int unused;
} esp_netif_config_t;
#define ESP_NETIF_DEFAULT_ETH()                                                                              \
    { 0 }
#define esp_netif_htonl(x) __builtin_bswap32(x)
#define ESP_ERR_ESP_NETIF_DHCP_ALREADY_STOPPED 0x5007

extern esp_event_base_t const ETH_EVENT;
extern esp_event_base_t const IP_EVENT;

esp_err_t esp_event_loop_create_default(void);
esp_err_t esp_event_handler_register(esp_event_base_t base, int32_t id, esp_event_handler_t handler,
                                     void *context);
esp_err_t esp_netif_init(void);
esp_netif_t *esp_netif_new(const esp_netif_config_t *config);
esp_err_t esp_netif_attach(esp_netif_t *interface, void *glue);
esp_err_t esp_netif_dhcpc_stop(esp_netif_t *interface);
esp_err_t esp_netif_set_ip_info(esp_netif_t *interface, const esp_netif_ip_info_t *info);
char *esp_ip4addr_ntoa(const esp_ip4_addr_t *address, char *text, int size);
esp_err_t esp_eth_driver_install(const esp_eth_config_t *config, esp_eth_handle_t *driver);
esp_eth_netif_glue_handle_t esp_eth_new_netif_glue(esp_eth_handle_t driver);
esp_err_t esp_eth_ioctl(esp_eth_handle_t driver, esp_eth_io_cmd_t command, void *data);
esp_err_t esp_eth_start(esp_eth_handle_t driver);
esp_err_t esp_eth_stop(esp_eth_handle_t driver);
