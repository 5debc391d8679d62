/* SPDX-License-Identifier: Apache-2.0 */
/* The Wi-Fi station's state, as its events tell it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/provision.h"
#include "esp_err.h"
#include "freertos/FreeRTOS.h"

/* Initialise NVS, network interface, event loop, Wi-Fi driver and event handlers. What is done already is not
 * done again, so it can be called again after an error, too. */
esp_err_t station_init(void);

/* Set the credentials, start and connect; reconnects by itself from now on. With other credentials than those
 * applied it leaves the network and connects with the new ones; with the same it does nothing. */
esp_err_t station_join(const agent_provision_t *provision);
/* Leave the network; nothing connects until station_join(), with whatever credentials. */
esp_err_t station_leave(void);
/* Switch the radio off; station_join() switches it on. Call station_leave() before. */
esp_err_t station_off(void);
/* Whether station_join() has started the radio. */
bool station_started(void);

/* Wait until there is an address. */
bool station_wait(TickType_t timeout);

/* Why the last connection ended or was refused: wifi_err_reason_t, 0 for never. */
uint8_t station_last_reason(void);
/* Connections lost after there had been an address. */
uint32_t station_reconnects(void);
/* Dotted IPv4 address, "" while there is none. */
const char *station_address(void);
