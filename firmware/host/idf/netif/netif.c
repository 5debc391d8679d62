/* SPDX-License-Identifier: Apache-2.0 */
#include "netif.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "esp_mac.h"

ESP_EVENT_DEFINE_BASE(IP_EVENT);

static pthread_mutex_t s_lock = PTHREAD_MUTEX_INITIALIZER;
static esp_netif_t *s_all;
static esp_netif_t *s_default; /* chosen by the product; else the one of the highest priority that is up */

/* The TCP/IP stack is the host's, and runs. */
esp_err_t esp_netif_init(void) {
    return ESP_OK;
}

esp_err_t esp_netif_deinit(void) {
    return ESP_ERR_NOT_SUPPORTED; /* as ESP-IDF's */
}

static esp_netif_t *find(bool (*fits)(esp_netif_t *, void *), void *context) {
    pthread_mutex_lock(&s_lock);
    esp_netif_t *netif = s_all;
    while (netif != NULL && !fits(netif, context)) {
        netif = netif->next;
    }
    pthread_mutex_unlock(&s_lock);
    return netif;
}

static bool has_key(esp_netif_t *netif, void *key) {
    return strcmp(netif->key, key) == 0;
}

esp_netif_t *esp_netif_get_handle_from_ifkey(const char *if_key) {
    return find(has_key, (void *)(uintptr_t)if_key);
}

esp_netif_t *esp_netif_find_if(esp_netif_find_predicate_t fn, void *ctx) {
    return find(fn, ctx);
}

esp_netif_t *esp_netif_new(const esp_netif_config_t *esp_netif_config) {
    if (esp_netif_config == NULL || esp_netif_config->base == NULL ||
        esp_netif_config->base->if_key == NULL ||
        esp_netif_get_handle_from_ifkey(esp_netif_config->base->if_key) != NULL) {
        return NULL;
    }
    esp_netif_t *netif = calloc(1, sizeof *netif);
    if (netif == NULL) {
        return NULL;
    }
    netif->config = *esp_netif_config->base;
    snprintf(netif->key, sizeof netif->key, "%s", netif->config.if_key);
    snprintf(netif->description, sizeof netif->description, "%s",
             netif->config.if_desc != NULL ? netif->config.if_desc : "");
    snprintf(netif->hostname, sizeof netif->hostname, "espressif");
    if (netif->config.ip_info != NULL) {
        netif->ip = *netif->config.ip_info;
    }
    netif->dhcp =
        (netif->config.flags & ESP_NETIF_DHCP_CLIENT) != 0 ? ESP_NETIF_DHCP_INIT : ESP_NETIF_DHCP_STOPPED;
    (void)esp_read_mac(netif->config.mac, ESP_MAC_WIFI_STA);
    pthread_mutex_lock(&s_lock);
    netif->next = s_all;
    s_all = netif;
    pthread_mutex_unlock(&s_lock);
    return netif;
}

void esp_netif_destroy(esp_netif_t *esp_netif) {
    pthread_mutex_lock(&s_lock);
    esp_netif_t **link = &s_all;
    while (*link != NULL && *link != esp_netif) {
        link = &(*link)->next;
    }
    bool known = esp_netif != NULL && *link == esp_netif;
    if (known) {
        *link = esp_netif->next;
    }
    if (s_default == esp_netif) {
        s_default = NULL;
    }
    pthread_mutex_unlock(&s_lock);
    if (known) {
        free(esp_netif);
    }
}

esp_netif_t *esp_netif_next_unsafe(esp_netif_t *esp_netif) {
    return esp_netif == NULL ? s_all : esp_netif->next;
}

size_t esp_netif_get_nr_of_ifs(void) {
    size_t count = 0;
    pthread_mutex_lock(&s_lock);
    for (const esp_netif_t *netif = s_all; netif != NULL; netif = netif->next) {
        count++;
    }
    pthread_mutex_unlock(&s_lock);
    return count;
}

esp_err_t esp_netif_set_default_netif(esp_netif_t *esp_netif) {
    pthread_mutex_lock(&s_lock);
    s_default = esp_netif;
    pthread_mutex_unlock(&s_lock);
    return ESP_OK;
}

esp_netif_t *esp_netif_get_default_netif(void) {
    pthread_mutex_lock(&s_lock);
    esp_netif_t *best = s_default;
    for (esp_netif_t *netif = s_all; netif != NULL && s_default == NULL; netif = netif->next) {
        bool better = best == NULL || netif->config.route_prio > best->config.route_prio;
        best = netif->connected && better ? netif : best;
    }
    pthread_mutex_unlock(&s_lock);
    return best;
}

esp_err_t esp_netif_set_mac(esp_netif_t *esp_netif, uint8_t mac[]) {
    if (esp_netif == NULL || mac == NULL) {
        return ESP_ERR_ESP_NETIF_INVALID_PARAMS;
    }
    memcpy(esp_netif->config.mac, mac, sizeof esp_netif->config.mac);
    return ESP_OK;
}

esp_err_t esp_netif_get_mac(esp_netif_t *esp_netif, uint8_t mac[]) {
    if (esp_netif == NULL || mac == NULL) {
        return ESP_ERR_ESP_NETIF_INVALID_PARAMS;
    }
    memcpy(mac, esp_netif->config.mac, sizeof esp_netif->config.mac);
    return ESP_OK;
}

esp_err_t esp_netif_set_hostname(esp_netif_t *esp_netif, const char *hostname) {
    if (esp_netif == NULL || hostname == NULL || strlen(hostname) >= HOSTNAME_MAX_BYTES) {
        return ESP_ERR_ESP_NETIF_INVALID_PARAMS;
    }
    strcpy(esp_netif->hostname, hostname);
    return ESP_OK;
}

esp_err_t esp_netif_get_hostname(esp_netif_t *esp_netif, const char **hostname) {
    if (esp_netif == NULL || hostname == NULL) {
        return ESP_ERR_ESP_NETIF_INVALID_PARAMS;
    }
    *hostname = esp_netif->hostname;
    return ESP_OK;
}

bool esp_netif_is_netif_up(esp_netif_t *esp_netif) {
    return esp_netif != NULL && esp_netif->connected;
}

int esp_netif_get_netif_impl_index(esp_netif_t *esp_netif) {
    return esp_netif != NULL && esp_netif->connected ? (int)if_nametoindex(esp_netif->host_name) : -1;
}

esp_err_t esp_netif_get_netif_impl_name(esp_netif_t *esp_netif, char *name) {
    if (esp_netif == NULL || !esp_netif->connected) {
        return ESP_ERR_ESP_NETIF_INVALID_PARAMS;
    }
    memcpy(name, esp_netif->host_name, sizeof esp_netif->host_name);
    return ESP_OK;
}

esp_netif_flags_t esp_netif_get_flags(esp_netif_t *esp_netif) {
    return esp_netif->config.flags;
}

const char *esp_netif_get_ifkey(esp_netif_t *esp_netif) {
    return esp_netif->key;
}

const char *esp_netif_get_desc(esp_netif_t *esp_netif) {
    return esp_netif != NULL ? esp_netif->description : NULL;
}

int esp_netif_get_route_prio(esp_netif_t *esp_netif) {
    return esp_netif != NULL ? esp_netif->config.route_prio : -1;
}

esp_err_t esp_netif_tcpip_exec(esp_netif_callback_fn fn, void *ctx) {
    return fn(ctx);
}
