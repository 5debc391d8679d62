/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of network interfaces; IPv4 in use, IPv6 as types only. */
#pragma once
#include <stdint.h>

#include "sdkconfig.h"

#ifdef __cplusplus
extern "C" {
#endif

struct esp_ip6_addr {
    uint32_t addr[4];
    uint8_t zone;
};
struct esp_ip4_addr {
    uint32_t addr; /* network byte order */
};
typedef struct esp_ip4_addr esp_ip4_addr_t;
typedef struct esp_ip6_addr esp_ip6_addr_t;
typedef struct _ip_addr {
    union {
        esp_ip6_addr_t ip6;
        esp_ip4_addr_t ip4;
    } u_addr;
    uint8_t type;
} esp_ip_addr_t;

#define ESP_IPADDR_TYPE_V4 0U
#define ESP_IPADDR_TYPE_V6 6U
#define ESP_IPADDR_TYPE_ANY 46U
#ifndef IP4ADDR_STRLEN_MAX
#define IP4ADDR_STRLEN_MAX 16
#endif

#define esp_netif_htonl(x) __builtin_bswap32((uint32_t)(x))
#define esp_netif_ip4_makeu32(a, b, c, d)                                                                    \
    (((uint32_t)((a)&0xff) << 24) | ((uint32_t)((b)&0xff) << 16) | ((uint32_t)((c)&0xff) << 8) |             \
     (uint32_t)((d)&0xff))
#define ESP_IP4TOUINT32(a, b, c, d) esp_netif_ip4_makeu32(a, b, c, d)
#define ESP_IP4TOADDR(a, b, c, d) esp_netif_htonl(ESP_IP4TOUINT32(a, b, c, d))
#define ESP_IP4ADDR_INIT(a, b, c, d)                                                                         \
    { .u_addr = {.ip4 = {.addr = ESP_IP4TOADDR(a, b, c, d)}}, .type = ESP_IPADDR_TYPE_V4 }

#define IPSTR "%d.%d.%d.%d"
#define esp_ip4_addr_get_byte(ipaddr, idx) (((const uint8_t *)(&(ipaddr)->addr))[idx])
#define esp_ip4_addr1(ipaddr) esp_ip4_addr_get_byte(ipaddr, 0)
#define esp_ip4_addr2(ipaddr) esp_ip4_addr_get_byte(ipaddr, 1)
#define esp_ip4_addr3(ipaddr) esp_ip4_addr_get_byte(ipaddr, 2)
#define esp_ip4_addr4(ipaddr) esp_ip4_addr_get_byte(ipaddr, 3)
#define esp_ip4_addr1_16(ipaddr) ((uint16_t)esp_ip4_addr1(ipaddr))
#define esp_ip4_addr2_16(ipaddr) ((uint16_t)esp_ip4_addr2(ipaddr))
#define esp_ip4_addr3_16(ipaddr) ((uint16_t)esp_ip4_addr3(ipaddr))
#define esp_ip4_addr4_16(ipaddr) ((uint16_t)esp_ip4_addr4(ipaddr))
#define IP2STR(ipaddr)                                                                                       \
    esp_ip4_addr1_16(ipaddr), esp_ip4_addr2_16(ipaddr), esp_ip4_addr3_16(ipaddr), esp_ip4_addr4_16(ipaddr)

#ifdef __cplusplus
}
#endif
