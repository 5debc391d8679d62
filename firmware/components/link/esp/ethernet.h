/* SPDX-License-Identifier: Apache-2.0 */
/* A cable's state, as its events tell it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "esp_err.h"
#include "freertos/FreeRTOS.h"
#include "link_words.h"

/* Make network interface, event loop, driver and event handlers. What is done already is not done again, so
 * it can be called again after an error, too. Errors are those of ethernet_parts_new() and of ESP-IDF. */
esp_err_t ethernet_init(const link_words_t *words);

/* Start, where it is stopped; an address comes by itself from now on. */
esp_err_t ethernet_start(void);
/* Stop; nothing is sent or received until ethernet_start(). */
esp_err_t ethernet_stop(void);
bool ethernet_started(void);

/* Wait until there is an address. */
bool ethernet_wait(TickType_t timeout);
/* Whether the transceiver sees another one at the end of the cable. */
bool ethernet_has_link(void);

/* 10 or 100, 0 while there is no link. */
uint32_t ethernet_speed_mbps(void);
bool ethernet_is_full_duplex(void);

/* Connections lost after there had been an address. */
uint32_t ethernet_reconnects(void);
/* Dotted IPv4 address, "" while there is none. */
const char *ethernet_address(void);
