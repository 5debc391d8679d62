/* SPDX-License-Identifier: Apache-2.0 */
// Messages kept until the broker acknowledged them, oldest first. Used under the client's API lock; the size
// may be read without it.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "packet.h"

typedef enum {
    OUTBOX_QUEUED,       // not sent yet
    OUTBOX_TRANSMITTED,  // sent, not acknowledged
    OUTBOX_ACKNOWLEDGED, // QoS 2: PUBREC received, PUBCOMP not yet
} outbox_state_t;

typedef struct outbox_item {
    uint8_t *packet; // the whole packet, however long
    size_t length;
    uint16_t id; // 0 for a stored QoS 0 publish
    mqtt_type_t type;
    int qos;
    outbox_state_t state;
    uint64_t time_ms; // stored, or sent by publish(): counts for resending and for expiry
    struct outbox_item *next;
} outbox_item_t;

typedef struct outbox outbox_t;

outbox_t *outbox_create(void);
void outbox_destroy(outbox_t *outbox);
void outbox_clear(outbox_t *outbox);

// Copies the first piece and `rest` behind it. NULL when there is no memory.
outbox_item_t *outbox_add(outbox_t *outbox, mqtt_type_t type, uint16_t id, int qos, const mqtt_frame_t *frame,
                          const void *rest, size_t rest_length, uint64_t now_ms);
outbox_item_t *outbox_first(const outbox_t *outbox, outbox_state_t state);
outbox_item_t *outbox_find(const outbox_t *outbox, uint16_t id);
void outbox_remove(outbox_t *outbox, outbox_item_t *item);
// true when there was one.
bool outbox_remove_id(outbox_t *outbox, uint16_t id, mqtt_type_t type);
// Removes one message older than timeout_ms: its id, or -1 when there is none.
int outbox_remove_expired(outbox_t *outbox, uint64_t now_ms, uint64_t timeout_ms);
uint64_t outbox_size_bytes(const outbox_t *outbox);
