/* SPDX-License-Identifier: Apache-2.0 */
// Subscribing and publishing: runs in the calling task, under the API lock.
#include <string.h>

#include "client_priv.h"
#include "esp_log.h"

static const char *TAG = "mqtt_client";

#define MAX_TOPICS 16

enum { FAILED = -1, OUTBOX_FULL = -2 };

static bool over_limit(esp_mqtt_client_handle_t client, size_t added_bytes) {
    uint64_t limit = client->settings.outbox_limit_bytes;
    return limit > 0 && added_bytes + outbox_size_bytes(client->outbox) > limit;
}

// Sends a SUBSCRIBE or UNSUBSCRIBE, kept in the outbox until its answer comes.
static int request(esp_mqtt_client_handle_t client, mqtt_type_t type, uint16_t id,
                   const mqtt_frame_t *frame) {
    if (frame->length == 0) {
        ESP_LOGE(TAG, "Subscribe or unsubscribe message cannot be created");
        return FAILED;
    }
    outbox_item_t *item = outbox_add(client->outbox, type, id, 0, frame, NULL, 0, mqtt_now_ms());
    if (item == NULL) {
        return FAILED;
    }
    item->state = OUTBOX_TRANSMITTED;
    return mqtt_write_frame(client, frame) == ESP_OK ? id : FAILED;
}

int esp_mqtt_client_subscribe_multiple(esp_mqtt_client_handle_t client, const esp_mqtt_topic_t *topic_list,
                                       int size) {
    const char *filters[MAX_TOPICS];
    int qos[MAX_TOPICS];
    if (client == NULL || size < 1 || size > MAX_TOPICS) {
        return FAILED;
    }
    if (over_limit(client, 0)) {
        return OUTBOX_FULL;
    }
    for (int i = 0; i < size; i++) {
        filters[i] = topic_list[i].filter;
        qos[i] = topic_list[i].qos;
    }
    int result = FAILED;
    mqtt_lock(client);
    if (client->state == MQTT_STATE_CONNECTED) {
        uint16_t id = mqtt_next_id(client);
        mqtt_frame_t frame = mqtt_encode_subscribe(&client->out, filters, qos, (size_t)size, id);
        result = request(client, MQTT_SUBSCRIBE, id, &frame);
    }
    mqtt_unlock(client);
    return result;
}

int esp_mqtt_client_subscribe_single(esp_mqtt_client_handle_t client, const char *topic, int qos) {
    esp_mqtt_topic_t one = {.filter = topic, .qos = qos};
    return esp_mqtt_client_subscribe_multiple(client, &one, 1);
}

int esp_mqtt_client_unsubscribe(esp_mqtt_client_handle_t client, const char *topic) {
    if (client == NULL) {
        return FAILED;
    }
    int result = FAILED;
    mqtt_lock(client);
    if (client->state == MQTT_STATE_CONNECTED) {
        uint16_t id = mqtt_next_id(client);
        mqtt_frame_t frame = mqtt_encode_unsubscribe(&client->out, topic, id);
        result = request(client, MQTT_UNSUBSCRIBE, id, &frame);
    }
    mqtt_unlock(client);
    return result;
}

typedef struct {
    const char *topic;
    const uint8_t *payload;
    size_t length;
    int qos;
    bool retain;
} message_t;

// len 0 with data: a string.
static message_t as_message(const char *topic, const char *data, int len, int qos, int retain) {
    size_t length = len > 0 ? (size_t)len : (data != NULL ? strlen(data) : 0);
    return (message_t){topic, (const uint8_t *)data, length, qos, retain != 0};
}

static mqtt_frame_t encode(esp_mqtt_client_handle_t client, const message_t *m, uint16_t *id) {
    *id = m->qos > 0 ? mqtt_next_id(client) : 0;
    return mqtt_encode_publish(&client->out, m->topic, m->payload, m->length, m->qos, m->retain, *id);
}

static outbox_item_t *store(esp_mqtt_client_handle_t client, const message_t *m, const mqtt_frame_t *frame,
                            uint16_t id) {
    size_t rest_length = m->length - frame->payload_taken;
    const uint8_t *rest = rest_length > 0 ? m->payload + frame->payload_taken : NULL;
    return outbox_add(client->outbox, MQTT_PUBLISH, id, m->qos, frame, rest, rest_length, mqtt_now_ms());
}

// The first piece is in the out buffer; each further one is copied there and is a write of its own.
static esp_err_t send_pieces(esp_mqtt_client_handle_t client, const message_t *m, const mqtt_frame_t *first) {
    esp_err_t err = mqtt_write(client, first->data, first->length);
    for (size_t sent = first->payload_taken; err == ESP_OK && sent < m->length;) {
        size_t left = m->length - sent;
        size_t piece = left < client->out.size ? left : client->out.size;
        memcpy(client->out.bytes, m->payload + sent, piece);
        err = mqtt_write(client, client->out.bytes, piece);
        sent += piece;
    }
    return err;
}

static int publish_locked(esp_mqtt_client_handle_t client, const message_t *m) {
    if (m->qos > 0 && over_limit(client, m->length)) {
        return OUTBOX_FULL;
    }
    uint16_t id = 0;
    mqtt_frame_t frame = encode(client, m, &id);
    if (frame.length == 0) {
        ESP_LOGE(TAG, "Publish message cannot be created");
        return FAILED;
    }
    outbox_item_t *item = m->qos > 0 ? store(client, m, &frame, id) : NULL;
    if (m->qos > 0 && item == NULL) {
        return FAILED;
    }
    if (client->state != MQTT_STATE_CONNECTED) {
        return m->qos > 0 ? id : FAILED; // stored: the task sends it once connected
    }
    if (send_pieces(client, m, &frame) != ESP_OK) {
        mqtt_connection_abort(client);
        return FAILED;
    }
    // A transport error's handler may have dropped the message, so it is looked up again.
    item = m->qos > 0 ? outbox_find(client->outbox, id) : NULL;
    if (item != NULL) {
        item->time_ms = mqtt_now_ms(); // a slow write must not make it look old
        item->state = OUTBOX_TRANSMITTED;
    }
    return id;
}

int esp_mqtt_client_publish(esp_mqtt_client_handle_t client, const char *topic, const char *data, int len,
                            int qos, int retain) {
    if (client == NULL) {
        return FAILED;
    }
#ifdef CONFIG_MQTT_SKIP_PUBLISH_IF_DISCONNECTED
    if (client->state != MQTT_STATE_CONNECTED) {
        return FAILED;
    }
#endif
    message_t message = as_message(topic, data, len, qos, retain);
    mqtt_lock(client);
    int result = publish_locked(client, &message);
    mqtt_unlock(client);
    return result;
}

static int enqueue_locked(esp_mqtt_client_handle_t client, const message_t *m) {
    uint16_t id = 0;
    mqtt_frame_t frame = encode(client, m, &id);
    return frame.length > 0 && store(client, m, &frame, id) != NULL ? id : FAILED;
}

int esp_mqtt_client_enqueue(esp_mqtt_client_handle_t client, const char *topic, const char *data, int len,
                            int qos, int retain, bool store_qos0) {
    if (client == NULL || (qos == 0 && !store_qos0)) {
        return FAILED;
    }
    message_t message = as_message(topic, data, len, qos, retain);
    if (over_limit(client, message.length)) {
        return OUTBOX_FULL;
    }
    mqtt_lock(client);
    int result = enqueue_locked(client, &message);
    mqtt_unlock(client);
    return result;
}
