/* SPDX-License-Identifier: Apache-2.0 */
/* The name server of a host: nobody else tells it one. */
#include "lwip/dns.h"
#include "link.h"

esp_err_t link_set_dns(const char *ipv4) {
    ip_addr_t server;
    if (ipaddr_aton(ipv4, &server) == 0) {
        return ESP_ERR_INVALID_ARG;
    }
    dns_setserver(0, &server);
    return ESP_OK;
}
