/* SPDX-License-Identifier: Apache-2.0 */
/* mDNS and DNS-SD (RFC 6762, RFC 6763): what products use of the registry's component espressif/mdns 1.x,
 * IPv4. docs/explain/host-network.md says what is not there. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "esp_err.h"
#include "esp_netif.h"
#include "sdkconfig.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MDNS_TYPE_A 0x0001
#define MDNS_TYPE_PTR 0x000C
#define MDNS_TYPE_TXT 0x0010
#define MDNS_TYPE_AAAA 0x001C
#define MDNS_TYPE_SRV 0x0021
#define MDNS_TYPE_ANY 0x00FF
#define MDNS_NAME_MAX_LEN 64
#define MDNS_NAME_BUF_LEN (MDNS_NAME_MAX_LEN + 1)

typedef struct mdns_search_once_s mdns_search_once_t;
typedef void (*mdns_query_notify_t)(mdns_search_once_t *search);

typedef enum { MDNS_IP_PROTOCOL_V4, MDNS_IP_PROTOCOL_V6, MDNS_IP_PROTOCOL_MAX } mdns_ip_protocol_t;

typedef enum {
    MDNS_QUERY_UNICAST,
    MDNS_QUERY_MULTICAST,
} mdns_query_transmission_type_t;

typedef struct {
    const char *key;
    const char *value;
} mdns_txt_item_t;

typedef struct mdns_ip_addr_s {
    esp_ip_addr_t addr;
    struct mdns_ip_addr_s *next;
} mdns_ip_addr_t;

typedef struct mdns_result_s {
    struct mdns_result_s *next;
    esp_netif_t *esp_netif;
    uint32_t ttl;
    mdns_ip_protocol_t ip_protocol;
    char *instance_name; /* PTR */
    char *service_type;
    char *proto;
    char *hostname; /* SRV */
    uint16_t port;
    mdns_txt_item_t *txt; /* TXT */
    uint8_t *txt_value_len;
    size_t txt_count;
    mdns_ip_addr_t *addr; /* A */
} mdns_result_t;

esp_err_t mdns_init(void);
void mdns_free(void);
esp_err_t mdns_hostname_set(const char *hostname);
esp_err_t mdns_hostname_get(char *hostname); /* MDNS_NAME_BUF_LEN bytes */
bool mdns_hostname_exists(const char *hostname);
esp_err_t mdns_instance_name_set(const char *instance_name);

esp_err_t mdns_service_add(const char *instance_name, const char *service_type, const char *proto,
                           uint16_t port, mdns_txt_item_t txt[], size_t num_items);
bool mdns_service_exists(const char *service_type, const char *proto, const char *hostname);
esp_err_t mdns_service_remove(const char *service_type, const char *proto);
esp_err_t mdns_service_remove_all(void);
esp_err_t mdns_service_instance_name_set(const char *service_type, const char *proto,
                                         const char *instance_name);
esp_err_t mdns_service_port_set(const char *service_type, const char *proto, uint16_t port);
esp_err_t mdns_service_txt_set(const char *service_type, const char *proto, mdns_txt_item_t txt[],
                               uint8_t num_items);
esp_err_t mdns_service_txt_item_set(const char *service_type, const char *proto, const char *key,
                                    const char *value);
esp_err_t mdns_service_txt_item_remove(const char *service_type, const char *proto, const char *key);

/* Times in ms. A search ends with its time, or when it has max_results and all that belongs to them. */
esp_err_t mdns_query_generic(const char *name, const char *service_type, const char *proto, uint16_t type,
                             mdns_query_transmission_type_t transmission_type, uint32_t timeout,
                             size_t max_results, mdns_result_t **results);
esp_err_t mdns_query(const char *name, const char *service_type, const char *proto, uint16_t type,
                     uint32_t timeout, size_t max_results, mdns_result_t **results);
esp_err_t mdns_query_ptr(const char *service_type, const char *proto, uint32_t timeout, size_t max_results,
                         mdns_result_t **results);
esp_err_t mdns_query_srv(const char *instance_name, const char *service_type, const char *proto,
                         uint32_t timeout, mdns_result_t **result);
esp_err_t mdns_query_txt(const char *instance_name, const char *service_type, const char *proto,
                         uint32_t timeout, mdns_result_t **result);
esp_err_t mdns_query_a(const char *host_name, uint32_t timeout, esp_ip4_addr_t *addr);
void mdns_query_results_free(mdns_result_t *results);
mdns_search_once_t *mdns_query_async_new(const char *name, const char *service_type, const char *proto,
                                         uint16_t type, uint32_t timeout, size_t max_results,
                                         mdns_query_notify_t notifier);
bool mdns_query_async_get_results(mdns_search_once_t *search, uint32_t timeout, mdns_result_t **results,
                                  uint8_t *num_results);
esp_err_t mdns_query_async_delete(mdns_search_once_t *search);

#ifdef __cplusplus
}
#endif
