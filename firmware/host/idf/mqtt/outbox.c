/* SPDX-License-Identifier: Apache-2.0 */
#include "outbox.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct outbox {
    outbox_item_t *first;
    atomic_uint_fast64_t size_bytes;
};

outbox_t *outbox_create(void) {
    return calloc(1, sizeof(outbox_t));
}

void outbox_clear(outbox_t *outbox) {
    while (outbox->first != NULL) {
        outbox_remove(outbox, outbox->first);
    }
}

void outbox_destroy(outbox_t *outbox) {
    if (outbox != NULL) {
        outbox_clear(outbox);
        free(outbox);
    }
}

static uint8_t *join(const mqtt_frame_t *frame, const void *rest, size_t rest_length) {
    uint8_t *packet = malloc(frame->length + rest_length);
    if (packet != NULL) {
        memcpy(packet, frame->data, frame->length);
        if (rest_length > 0) {
            memcpy(packet + frame->length, rest, rest_length);
        }
    }
    return packet;
}

outbox_item_t *outbox_add(outbox_t *outbox, mqtt_type_t type, uint16_t id, int qos, const mqtt_frame_t *frame,
                          const void *rest, size_t rest_length, uint64_t now_ms) {
    outbox_item_t *item = calloc(1, sizeof(*item));
    uint8_t *packet = item == NULL ? NULL : join(frame, rest, rest_length);
    if (packet == NULL) {
        free(item);
        return NULL;
    }
    *item = (outbox_item_t){.packet = packet,
                            .length = frame->length + rest_length,
                            .id = id,
                            .type = type,
                            .qos = qos,
                            .state = OUTBOX_QUEUED,
                            .time_ms = now_ms};
    outbox_item_t **last = &outbox->first;
    while (*last != NULL) {
        last = &(*last)->next;
    }
    *last = item;
    atomic_fetch_add(&outbox->size_bytes, item->length);
    return item;
}

outbox_item_t *outbox_first(const outbox_t *outbox, outbox_state_t state) {
    outbox_item_t *item = outbox->first;
    while (item != NULL && item->state != state) {
        item = item->next;
    }
    return item;
}

outbox_item_t *outbox_find(const outbox_t *outbox, uint16_t id) {
    outbox_item_t *item = outbox->first;
    while (item != NULL && item->id != id) {
        item = item->next;
    }
    return item;
}

void outbox_remove(outbox_t *outbox, outbox_item_t *item) {
    outbox_item_t **link = &outbox->first;
    while (*link != item) {
        link = &(*link)->next;
    }
    *link = item->next;
    atomic_fetch_sub(&outbox->size_bytes, item->length);
    free(item->packet);
    free(item);
}

bool outbox_remove_id(outbox_t *outbox, uint16_t id, mqtt_type_t type) {
    for (outbox_item_t *item = outbox->first; item != NULL; item = item->next) {
        if (item->id == id && item->type == type) {
            outbox_remove(outbox, item);
            return true;
        }
    }
    return false;
}

int outbox_remove_expired(outbox_t *outbox, uint64_t now_ms, uint64_t timeout_ms) {
    for (outbox_item_t *item = outbox->first; item != NULL; item = item->next) {
        if (now_ms - item->time_ms > timeout_ms) {
            int id = item->id;
            outbox_remove(outbox, item);
            return id;
        }
    }
    return -1;
}

uint64_t outbox_size_bytes(const outbox_t *outbox) {
    return atomic_load(&outbox->size_bytes);
}
