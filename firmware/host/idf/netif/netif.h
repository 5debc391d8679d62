/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of a network interface. */
#pragma once
#include <net/if.h>

#include "esp_netif.h"

#define HOSTNAME_MAX_BYTES 33

struct esp_netif_obj {
    esp_netif_inherent_config_t config;
    char key[32];
    char description[64];
    char hostname[HOSTNAME_MAX_BYTES];
    char host_name[IF_NAMESIZE]; /* the host's interface, once it is up */
    esp_netif_ip_info_t ip;
    esp_netif_ip_info_t told; /* what the last event said */
    esp_netif_dhcp_status_t dhcp;
    bool connected;
    struct esp_netif_obj *next;
};
