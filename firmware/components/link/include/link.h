/* SPDX-License-Identifier: Apache-2.0 */
/* The network link: a Wi-Fi station or a cable on a chip, already up on a host. */
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
 * Where the program that the agent is part of has a network of its own (it has an address, or Wi-Fi is
 * initialised, or the agent may take none), nothing is initialised or connected: its address is waited for.
 *
 * The field `link` says which link it is (docs/reference/provisioning.md has the words). A boot has one:
 * that of the first call that got so far. The Wi-Fi driver is never started for a cable, nor the other way
 * round.
 *
 * Returns ESP_ERR_INVALID_ARG without an SSID where one is needed, ESP_ERR_WIFI_SSID, ESP_ERR_WIFI_PASSWORD
 * or ESP_ERR_TIMEOUT when the access point was not found, refused us, or gave no address in time; of a cable
 * ESP_ERR_TIMEOUT alone. ESP_ERR_INVALID_ARG for a wrong word of `link`, ESP_ERR_NOT_SUPPORTED for a link
 * that the chip has not (a host has none but Wi-Fi, which it plays), ESP_ERR_INVALID_STATE for another one
 * than this boot's; a line of the log names the word.
 */
esp_err_t link_up(const agent_provision_t *provision, TickType_t timeout);

/* Leave the network; link_up() joins anew. ESP_OK also where it is down already. A host's network stays up;
 * ESP_ERR_NOT_SUPPORTED where it is the program's own.
 */
esp_err_t link_down(void);

/* Leave the network and switch the radio off, as a chip has to before it sleeps; link_up() switches it on and
 * joins anew. Returns as link_down() does. */
esp_err_t link_off(void);

/* Resolve names by this server from now on. Call it when the link is up: a lease that DHCP renews brings the
 * network's own server back.
 *
 * Returns ESP_ERR_INVALID_ARG for what is no dotted IPv4 address, ESP_ERR_INVALID_STATE before link_up().
 */
esp_err_t link_set_dns(const char *ipv4);

typedef void (*link_environment_cb_t)(const char *key, const char *value, void *context);

/* Tell what the link is like now: link (wifi, ethernet, host or down), ip, reconnects; of Wi-Fi rssi_dbm,
 * bssid, channel, power_save; of a cable link_type, cable, speed_mbps, duplex. */
void link_environment(link_environment_cb_t callback, void *context);

#ifdef __cplusplus
}
#endif
