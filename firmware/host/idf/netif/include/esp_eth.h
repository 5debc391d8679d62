/* SPDX-License-Identifier: Apache-2.0 */
/* Names that sources for boards with and without a cable have in common. There is no Ethernet: no driver can
 * be installed, and no such event ever comes. */
#pragma once
#include "esp_err.h"
#include "esp_event.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef void *esp_eth_handle_t;

ESP_EVENT_DECLARE_BASE(ETH_EVENT);

typedef enum {
    ETHERNET_EVENT_START,
    ETHERNET_EVENT_STOP,
    ETHERNET_EVENT_CONNECTED,
    ETHERNET_EVENT_DISCONNECTED,
} eth_event_t;

#ifdef __cplusplus
}
#endif
