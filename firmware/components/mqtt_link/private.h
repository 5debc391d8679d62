/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this component share. */
#pragma once

#include "mqtt_link/link.h"

enum {
    CONNECT_TIMEOUT_MS = 30000,
    CONNECTED_BIT = 1,
    SUBSCRIBED_BIT = 2,
    ERROR_BIT = 4,
};

enum { MQTT_LINK_MAC_SIZE = sizeof("0123456789ab") };

/* The station's address, as twelve lower-case hexadecimal digits. */
void mqtt_link_write_mac(char text[MQTT_LINK_MAC_SIZE]);

/* Of the transport, 0 where it was not provisioned. */
uint16_t mqtt_link_port(const mqtt_link_t *link);

bool mqtt_link_has_tls(const mqtt_link_t *link);

/* esp-mqtt's event handler. */
void mqtt_link_handle_event(void *link, esp_event_base_t base, int32_t event_id, void *event_data);

/* Tell the host why there is no connection, and whose fault it is. `bits` are those that were set. */
esp_err_t mqtt_link_fail(const mqtt_link_t *link, EventBits_t bits);
