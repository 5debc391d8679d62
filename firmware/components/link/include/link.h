/* SPDX-License-Identifier: Apache-2.0 */
/* The network link: a Wi-Fi station on a chip, already up on a host. */
#pragma once

#include "agent/provision.h"
#include "esp_err.h"
#include "freertos/FreeRTOS.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Bring the network up and wait until there is an IPv4 address. Calling it again when up is ESP_OK;
 * with other credentials it leaves the network and joins with those.
 *
 * Returns ESP_ERR_INVALID_ARG without an SSID, ESP_ERR_WIFI_SSID, ESP_ERR_WIFI_PASSWORD or
 * ESP_ERR_TIMEOUT when the access point was not found, refused us, or gave no address in time.
 */
esp_err_t link_up(const agent_provision_t *provision, TickType_t timeout);

/* Leave the network; link_up() joins anew. ESP_OK also where it is down already. A host's network stays up.
 */
esp_err_t link_down(void);

/* Resolve names by this server from now on. Call it when the link is up: a lease that DHCP renews brings the
 * network's own server back.
 *
 * Returns ESP_ERR_INVALID_ARG for what is no dotted IPv4 address, ESP_ERR_INVALID_STATE before link_up().
 */
esp_err_t link_set_dns(const char *ipv4);

typedef void (*link_environment_cb_t)(const char *key, const char *value, void *context);

/* Tell what the link is like now: link, ip, rssi_dbm, bssid, channel, power_save, reconnects. */
void link_environment(link_environment_cb_t callback, void *context);

#ifdef __cplusplus
}
#endif
