/* SPDX-License-Identifier: Apache-2.0 */
/* Network interfaces. One can be up: it stands for the host's interface that VBOARD_INTERFACE names, else for
 * the first that is up and not the loopback. Its address is the host's, whatever is set here. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "esp_netif_defaults.h"
#include "esp_netif_ip_addr.h"
#include "esp_netif_types.h"
#include "sdkconfig.h"

#ifdef __cplusplus
extern "C" {
#endif

esp_err_t esp_netif_init(void);
esp_err_t esp_netif_deinit(void);
esp_netif_t *esp_netif_new(const esp_netif_config_t *esp_netif_config);
void esp_netif_destroy(esp_netif_t *esp_netif);

/* What the driver of an interface tells it; handlers of its events, or called by it. */
void esp_netif_action_start(void *esp_netif, esp_event_base_t base, int32_t event_id, void *data);
void esp_netif_action_stop(void *esp_netif, esp_event_base_t base, int32_t event_id, void *data);
void esp_netif_action_connected(void *esp_netif, esp_event_base_t base, int32_t event_id, void *data);
void esp_netif_action_disconnected(void *esp_netif, esp_event_base_t base, int32_t event_id, void *data);

esp_err_t esp_netif_set_default_netif(esp_netif_t *esp_netif);
esp_netif_t *esp_netif_get_default_netif(void);
esp_err_t esp_netif_set_mac(esp_netif_t *esp_netif, uint8_t mac[]);
esp_err_t esp_netif_get_mac(esp_netif_t *esp_netif, uint8_t mac[]);
esp_err_t esp_netif_set_hostname(esp_netif_t *esp_netif, const char *hostname);
esp_err_t esp_netif_get_hostname(esp_netif_t *esp_netif, const char **hostname);
bool esp_netif_is_netif_up(esp_netif_t *esp_netif);
esp_err_t esp_netif_get_ip_info(esp_netif_t *esp_netif, esp_netif_ip_info_t *ip_info);
esp_err_t esp_netif_set_ip_info(esp_netif_t *esp_netif, const esp_netif_ip_info_t *ip_info);
int esp_netif_get_netif_impl_index(esp_netif_t *esp_netif);
esp_err_t esp_netif_get_netif_impl_name(esp_netif_t *esp_netif, char *name);
esp_err_t esp_netif_dhcpc_start(esp_netif_t *esp_netif);
esp_err_t esp_netif_dhcpc_stop(esp_netif_t *esp_netif);
esp_err_t esp_netif_dhcpc_get_status(esp_netif_t *esp_netif, esp_netif_dhcp_status_t *status);
esp_err_t esp_netif_set_dns_info(esp_netif_t *esp_netif, esp_netif_dns_type_t type,
                                 esp_netif_dns_info_t *dns);
esp_err_t esp_netif_get_dns_info(esp_netif_t *esp_netif, esp_netif_dns_type_t type,
                                 esp_netif_dns_info_t *dns);
void esp_netif_set_ip4_addr(esp_ip4_addr_t *addr, uint8_t a, uint8_t b, uint8_t c, uint8_t d);
char *esp_ip4addr_ntoa(const esp_ip4_addr_t *addr, char *buf, int buflen);
uint32_t esp_ip4addr_aton(const char *addr);
esp_err_t esp_netif_str_to_ip4(const char *src, esp_ip4_addr_t *dst);
esp_netif_t *esp_netif_get_handle_from_ifkey(const char *if_key);
esp_netif_flags_t esp_netif_get_flags(esp_netif_t *esp_netif);
const char *esp_netif_get_ifkey(esp_netif_t *esp_netif);
const char *esp_netif_get_desc(esp_netif_t *esp_netif);
int esp_netif_get_route_prio(esp_netif_t *esp_netif);
esp_netif_t *esp_netif_next_unsafe(esp_netif_t *esp_netif);
typedef bool (*esp_netif_find_predicate_t)(esp_netif_t *netif, void *ctx);
esp_netif_t *esp_netif_find_if(esp_netif_find_predicate_t fn, void *ctx);
size_t esp_netif_get_nr_of_ifs(void);
typedef esp_err_t (*esp_netif_callback_fn)(void *ctx);
/* On the host in the caller's task. */
esp_err_t esp_netif_tcpip_exec(esp_netif_callback_fn fn, void *ctx);

#ifdef __cplusplus
}
#endif
