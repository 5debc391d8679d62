/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "host_interface.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_meant(const struct ifaddrs *at) {
    const char *name = getenv("VBOARD_INTERFACE");
    if (at->ifa_addr == NULL || at->ifa_addr->sa_family != AF_INET) {
        return false;
    }
    bool usual = (at->ifa_flags & IFF_UP) != 0 && (at->ifa_flags & IFF_LOOPBACK) == 0;
    return name != NULL ? strcmp(name, at->ifa_name) == 0 : usual;
}

static uint32_t address_in(const struct sockaddr *address) {
    return address != NULL ? ((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr : 0;
}

static uint32_t gateway_of(const char *interface) {
    FILE *routes = fopen("/proc/net/route", "re");
    char line[256];
    char name[IF_NAMESIZE];
    unsigned destination = 0;
    unsigned gateway = 0;
    uint32_t found = 0;
    while (routes != NULL && found == 0 && fgets(line, sizeof line, routes) != NULL) {
        if (sscanf(line, "%15s %x %x", name, &destination, &gateway) == 3 && destination == 0 &&
            strcmp(name, interface) == 0) {
            found = gateway;
        }
    }
    if (routes != NULL) {
        fclose(routes);
    }
    return found;
}

/* Returns the flags of the interface, 0 where there is none. */
static unsigned look(char name[IF_NAMESIZE], esp_netif_ip_info_t *info) {
    struct ifaddrs *all = NULL;
    unsigned flags = 0;
    if (getifaddrs(&all) != 0) {
        return 0;
    }
    for (const struct ifaddrs *at = all; at != NULL && flags == 0; at = at->ifa_next) {
        if (is_meant(at)) {
            flags = at->ifa_flags;
            snprintf(name, IF_NAMESIZE, "%s", at->ifa_name);
            info->ip.addr = address_in(at->ifa_addr);
            info->netmask.addr = address_in(at->ifa_netmask);
        }
    }
    freeifaddrs(all);
    return flags;
}

bool host_interface_find(char name[IF_NAMESIZE], esp_netif_ip_info_t *info) {
    memset(info, 0, sizeof *info);
    if (look(name, info) == 0) {
        return false;
    }
    info->gw.addr = gateway_of(name);
    return true;
}

bool host_interface_runs(void) {
    char name[IF_NAMESIZE];
    esp_netif_ip_info_t info;
    unsigned flags = look(name, &info);
    return (flags & IFF_UP) != 0 && (flags & IFF_RUNNING) != 0;
}

uint32_t host_interface_name_server(void) {
    FILE *file = fopen("/etc/resolv.conf", "re");
    char line[256];
    char text[64];
    struct in_addr address = {0};
    while (file != NULL && address.s_addr == 0 && fgets(line, sizeof line, file) != NULL) {
        if (sscanf(line, "nameserver %63s", text) == 1 && inet_aton(text, &address) == 0) {
            address.s_addr = 0;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return address.s_addr;
}
