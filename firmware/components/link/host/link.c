/* SPDX-License-Identifier: Apache-2.0 */
/* On a host the network is up before the program starts: the virtual rack attached an interface. */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "esp_log.h"
#include "link.h"

/* Find the first IPv4 interface that is up and not the loopback. */
static bool find_interface(char name[IF_NAMESIZE], char address[INET_ADDRSTRLEN]) {
    struct ifaddrs *all = NULL;
    bool found = false;
    if (getifaddrs(&all) != 0) {
        return false;
    }
    for (struct ifaddrs *at = all; at != NULL && !found; at = at->ifa_next) {
        bool up = (at->ifa_flags & IFF_UP) != 0 && (at->ifa_flags & IFF_LOOPBACK) == 0;
        if (!up || at->ifa_addr == NULL || at->ifa_addr->sa_family != AF_INET) {
            continue;
        }
        const struct sockaddr_in *ipv4 = (const struct sockaddr_in *)(const void *)at->ifa_addr;
        found = inet_ntop(AF_INET, &ipv4->sin_addr, address, INET_ADDRSTRLEN) != NULL &&
                if_indextoname(if_nametoindex(at->ifa_name), name) != NULL;
    }
    freeifaddrs(all);
    return found;
}

esp_err_t link_up(const agent_provision_t *provision, TickType_t timeout) {
    (void)timeout;
    if (provision->link[0] != '\0' && strcmp(provision->link, "wifi") != 0) {
        ESP_LOGE("link", "a host has no '%s'", provision->link);
        return ESP_ERR_NOT_SUPPORTED;
    }
    return ESP_OK;
}

esp_err_t link_down(void) {
    return ESP_OK;
}

esp_err_t link_off(void) {
    return ESP_OK;
}

/* A host has no radio: only where the virtual board says what one would find does the board tell of one. */
static void tell_radio(link_environment_cb_t callback, void *context) {
    const char *rssi_dbm = getenv("VBOARD_RSSI_DBM");
    const char *channel = getenv("VBOARD_CHANNEL");
    char bssid[18];
    if (rssi_dbm != NULL) {
        callback("rssi_dbm", rssi_dbm, context);
    }
    if (channel != NULL) {
        snprintf(bssid, sizeof(bssid), "02:00:00:00:00:%02x", (unsigned)atoi(channel) & 0xffU);
        callback("bssid", bssid, context);
        callback("channel", channel, context);
    }
}

void link_environment(link_environment_cb_t callback, void *context) {
    char name[IF_NAMESIZE];
    char address[INET_ADDRSTRLEN];
    callback("link", "host", context);
    callback("power_save", "none", context);
    if (find_interface(name, address)) {
        callback("interface", name, context);
        callback("ip", address, context);
    }
    tell_radio(callback, context);
}
