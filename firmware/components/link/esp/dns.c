/* SPDX-License-Identifier: Apache-2.0 */
/* The name server of a chip: that of its one interface, in place of the one that DHCP told. */
#include "esp_netif.h"
#include "link.h"

esp_err_t link_set_dns(const char *ipv4) {
    esp_netif_t *cable = esp_netif_get_handle_from_ifkey("ETH_DEF");
    esp_netif_t *interface = cable != NULL ? cable : esp_netif_get_handle_from_ifkey("WIFI_STA_DEF");
    esp_netif_dns_info_t server = {.ip.type = ESP_IPADDR_TYPE_V4};
    if (esp_netif_str_to_ip4(ipv4, &server.ip.u_addr.ip4) != ESP_OK) {
        return ESP_ERR_INVALID_ARG;
    }
    return interface != NULL ? esp_netif_set_dns_info(interface, ESP_NETIF_DNS_MAIN, &server)
                             : ESP_ERR_INVALID_STATE;
}
