/* SPDX-License-Identifier: Apache-2.0 */
/* The name server of a chip: that of the station's interface, in place of the one that DHCP told. */
#include "esp_netif.h"
#include "link.h"

esp_err_t link_set_dns(const char *ipv4) {
    esp_netif_t *station = esp_netif_get_handle_from_ifkey("WIFI_STA_DEF");
    esp_netif_dns_info_t server = {.ip.type = ESP_IPADDR_TYPE_V4};
    if (esp_netif_str_to_ip4(ipv4, &server.ip.u_addr.ip4) != ESP_OK) {
        return ESP_ERR_INVALID_ARG;
    }
    return station != NULL ? esp_netif_set_dns_info(station, ESP_NETIF_DNS_MAIN, &server)
                           : ESP_ERR_INVALID_STATE;
}
