/* SPDX-License-Identifier: Apache-2.0 */
/* An interface's address: when it comes and goes, and who is told. */
#include <arpa/inet.h>
#include <string.h>

#include "esp_event.h"
#include "esp_log.h"
#include "host_interface.h"
#include "lwip/dns.h"
#include "netif.h"

static const char *TAG = "esp_netif_handlers";

static void tell_address(esp_netif_t *netif) {
    ip_event_got_ip_t event = {.esp_netif = netif, .ip_info = netif->ip};
    event.ip_changed = memcmp(&netif->told, &netif->ip, sizeof netif->ip) != 0;
    netif->told = netif->ip;
    ESP_LOGI(TAG, "%s ip: " IPSTR ", mask: " IPSTR ", gw: " IPSTR, netif->description, IP2STR(&netif->ip.ip),
             IP2STR(&netif->ip.netmask), IP2STR(&netif->ip.gw));
    (void)esp_event_post(IP_EVENT, (int32_t)netif->config.get_ip_event, &event, sizeof event, 0);
}

/* A name server that came with the address stays until another one is set. */
static void take_name_server(void) {
    const ip_addr_t *known = dns_getserver(ESP_NETIF_DNS_MAIN);
    uint32_t server = host_interface_name_server();
    if (server != 0 && (known == NULL || known->u_addr.ip4.addr == 0)) {
        const ip_addr_t address = {.u_addr.ip4.addr = server, .type = IPADDR_TYPE_V4};
        dns_setserver(ESP_NETIF_DNS_MAIN, &address);
    }
}

static void take_address(esp_netif_t *netif) {
    esp_netif_ip_info_t found;
    if (!host_interface_find(netif->host_name, &found)) {
        ESP_LOGE(TAG, "%s: the host has no interface with an address", netif->description);
        return;
    }
    netif->connected = true;
    if (netif->dhcp == ESP_NETIF_DHCP_STOPPED && netif->ip.ip.addr != 0) {
        if (netif->ip.ip.addr != found.ip.addr) {
            ESP_LOGW(TAG, "%s: set to " IPSTR ", but the host's interface has " IPSTR, netif->description,
                     IP2STR(&netif->ip.ip), IP2STR(&found.ip));
        }
    } else {
        netif->dhcp = ESP_NETIF_DHCP_STARTED;
        netif->ip = found;
        take_name_server();
    }
    tell_address(netif);
}

void esp_netif_action_start(void *esp_netif, esp_event_base_t base, int32_t event_id, void *data) {
    (void)esp_netif;
    (void)base;
    (void)event_id;
    (void)data;
}

void esp_netif_action_connected(void *esp_netif, esp_event_base_t base, int32_t event_id, void *data) {
    (void)base;
    (void)event_id;
    (void)data;
    esp_netif_t *netif = esp_netif;
    if (!netif->connected) {
        take_address(netif);
    }
}

void esp_netif_action_disconnected(void *esp_netif, esp_event_base_t base, int32_t event_id, void *data) {
    (void)base;
    (void)event_id;
    (void)data;
    esp_netif_t *netif = esp_netif;
    netif->connected = false;
    if (netif->dhcp != ESP_NETIF_DHCP_STOPPED) {
        memset(&netif->ip, 0, sizeof netif->ip);
        netif->dhcp = ESP_NETIF_DHCP_INIT;
    }
}

void esp_netif_action_stop(void *esp_netif, esp_event_base_t base, int32_t event_id, void *data) {
    esp_netif_action_disconnected(esp_netif, base, event_id, data);
}

esp_err_t esp_netif_get_ip_info(esp_netif_t *esp_netif, esp_netif_ip_info_t *ip_info) {
    if (esp_netif == NULL || ip_info == NULL) {
        return ESP_ERR_ESP_NETIF_INVALID_PARAMS;
    }
    *ip_info = esp_netif->ip;
    return ESP_OK;
}

esp_err_t esp_netif_set_ip_info(esp_netif_t *esp_netif, const esp_netif_ip_info_t *ip_info) {
    if (esp_netif == NULL || ip_info == NULL) {
        return ESP_ERR_ESP_NETIF_INVALID_PARAMS;
    }
    if (esp_netif->dhcp != ESP_NETIF_DHCP_STOPPED) {
        return ESP_ERR_ESP_NETIF_DHCP_NOT_STOPPED;
    }
    esp_netif->ip = *ip_info;
    if (esp_netif->connected && ip_info->ip.addr != 0) {
        tell_address(esp_netif);
    }
    return ESP_OK;
}

esp_err_t esp_netif_dhcpc_start(esp_netif_t *esp_netif) {
    if (esp_netif == NULL || (esp_netif->config.flags & ESP_NETIF_DHCP_CLIENT) == 0) {
        return ESP_ERR_ESP_NETIF_INVALID_PARAMS;
    }
    if (esp_netif->dhcp == ESP_NETIF_DHCP_STARTED) {
        return ESP_ERR_ESP_NETIF_DHCP_ALREADY_STARTED;
    }
    esp_netif->dhcp = ESP_NETIF_DHCP_INIT;
    memset(&esp_netif->ip, 0, sizeof esp_netif->ip);
    if (esp_netif->connected) {
        take_address(esp_netif);
    }
    return ESP_OK;
}

esp_err_t esp_netif_dhcpc_stop(esp_netif_t *esp_netif) {
    if (esp_netif == NULL || (esp_netif->config.flags & ESP_NETIF_DHCP_CLIENT) == 0) {
        return ESP_ERR_ESP_NETIF_INVALID_PARAMS;
    }
    if (esp_netif->dhcp == ESP_NETIF_DHCP_STOPPED) {
        return ESP_ERR_ESP_NETIF_DHCP_ALREADY_STOPPED;
    }
    esp_netif->dhcp = ESP_NETIF_DHCP_STOPPED;
    memset(&esp_netif->ip, 0, sizeof esp_netif->ip);
    return ESP_OK;
}

esp_err_t esp_netif_dhcpc_get_status(esp_netif_t *esp_netif, esp_netif_dhcp_status_t *status) {
    if (esp_netif == NULL || status == NULL) {
        return ESP_ERR_ESP_NETIF_INVALID_PARAMS;
    }
    *status = esp_netif->dhcp;
    return ESP_OK;
}

esp_err_t esp_netif_set_dns_info(esp_netif_t *esp_netif, esp_netif_dns_type_t type,
                                 esp_netif_dns_info_t *dns) {
    if (esp_netif == NULL || dns == NULL || type >= ESP_NETIF_DNS_MAX || dns->ip.type != ESP_IPADDR_TYPE_V4) {
        return ESP_ERR_ESP_NETIF_INVALID_PARAMS;
    }
    const ip_addr_t address = {.u_addr.ip4.addr = dns->ip.u_addr.ip4.addr, .type = IPADDR_TYPE_V4};
    dns_setserver((u8_t)type, &address);
    return ESP_OK;
}

esp_err_t esp_netif_get_dns_info(esp_netif_t *esp_netif, esp_netif_dns_type_t type,
                                 esp_netif_dns_info_t *dns) {
    if (esp_netif == NULL || dns == NULL || type >= ESP_NETIF_DNS_MAX) {
        return ESP_ERR_ESP_NETIF_INVALID_PARAMS;
    }
    memset(dns, 0, sizeof *dns);
    const ip_addr_t *address = dns_getserver((u8_t)type);
    dns->ip.u_addr.ip4.addr = address != NULL ? address->u_addr.ip4.addr : 0;
    return ESP_OK;
}

void esp_netif_set_ip4_addr(esp_ip4_addr_t *addr, uint8_t a, uint8_t b, uint8_t c, uint8_t d) {
    addr->addr = ESP_IP4TOADDR(a, b, c, d);
}

char *esp_ip4addr_ntoa(const esp_ip4_addr_t *addr, char *buf, int buflen) {
    const struct in_addr address = {.s_addr = addr->addr};
    return (char *)(uintptr_t)inet_ntop(AF_INET, &address, buf, (socklen_t)buflen);
}

uint32_t esp_ip4addr_aton(const char *addr) {
    struct in_addr address;
    return inet_aton(addr, &address) != 0 ? address.s_addr : UINT32_MAX;
}

esp_err_t esp_netif_str_to_ip4(const char *src, esp_ip4_addr_t *dst) {
    struct in_addr address;
    if (src == NULL || dst == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    if (inet_pton(AF_INET, src, &address) != 1) {
        return ESP_FAIL;
    }
    dst->addr = address.s_addr;
    return ESP_OK;
}
