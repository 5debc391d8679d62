/* SPDX-License-Identifier: Apache-2.0 */
#include "esp_netif.h"
#include "private.h"

esp_err_t cost_loopback(void) {
    return esp_netif_init(); /* lwIP has an interface of its own for it (CONFIG_LWIP_NETIF_LOOPBACK) */
}
