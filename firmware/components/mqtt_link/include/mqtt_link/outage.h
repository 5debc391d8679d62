/* SPDX-License-Identifier: Apache-2.0 */
/* What the mqtt task sees of an outage, on the board's clock. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "mqtt_client.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The run's task reads the plain fields while none is armed, or once it is over. Times are since t0. */
typedef struct {
    int64_t t0_us;     /* set it before the connection is opened */
    uint32_t least_us; /* a gap between acknowledgements that is as long is the outage */

    atomic_bool armed; /* the next such gap is the outage */
    atomic_bool over;
    atomic_bool connected;
    atomic_uint last_ack_us;
    atomic_uint acks;
    uint32_t start_us, end_us; /* the last acknowledgement before, the first one after */
    uint32_t detected_us;      /* from the last acknowledgement until the client noticed; 0 if it never did */
    uint32_t connected_us;     /* until it was connected again; 0 if it never was gone */
    uint32_t disconnects;
    uint32_t connects_failed, connect_failed_max_us; /* attempts given up, and how long the longest took */
    bool connecting;
    uint32_t connecting_since_us;
} mqtt_outage_t;

/* An event of the connection; for mqtt_link_t.on_event, with the outage as its context. QoS 1. */
void mqtt_outage_on_event(void *outage, const esp_mqtt_event_t *event);

void mqtt_outage_arm(mqtt_outage_t *outage);

uint32_t mqtt_outage_now_us(const mqtt_outage_t *outage);

#ifdef __cplusplus
}
#endif
