/* SPDX-License-Identifier: Apache-2.0 */
/* The two halves of a wired link, controller and transceiver, made for what `link_words_t` says. */
#pragma once

#include "esp_err.h"
#include "esp_eth_mac.h"
#include "esp_eth_phy.h"
#include "link_words.h"

typedef struct {
    esp_eth_mac_t *mac;
    esp_eth_phy_t *phy;
} ethernet_parts_t;

/* Make both. On an error there is neither.
 *
 * Returns ESP_ERR_NOT_SUPPORTED, and says so by name, where this chip has no such controller; ESP_FAIL where
 * the driver refuses the wiring. */
esp_err_t ethernet_parts_new(const link_words_t *words, ethernet_parts_t *parts);
void ethernet_parts_delete(ethernet_parts_t *parts);
