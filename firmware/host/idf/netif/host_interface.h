/* SPDX-License-Identifier: Apache-2.0 */
/* The host's network interface that the board's stands for. */
#pragma once
#include <net/if.h>
#include <stdbool.h>

#include "esp_netif_types.h"

/* False where there is none. */
bool host_interface_find(char name[IF_NAMESIZE], esp_netif_ip_info_t *info);
/* Whether frames can pass: up, and with a carrier. */
bool host_interface_runs(void);
/* The address of a name server in /etc/resolv.conf, 0 for none; network byte order. */
uint32_t host_interface_name_server(void);
