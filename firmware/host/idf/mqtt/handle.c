/* SPDX-License-Identifier: Apache-2.0 */
// What the client does with each packet of the broker.
#include "client_priv.h"
#include "esp_log.h"

static const char *TAG = "mqtt_client";

// The pieces of a payload that did not fit the in buffer, each an event as it arrives.
static esp_err_t deliver_rest(esp_mqtt_client_handle_t client, esp_mqtt_event_t *event, size_t delivered,
                              size_t total) {
    mqtt_in_buffer_t *in = &client->in;
    while (delivered < total) {
        size_t left = total - delivered;
        int n =
            esp_transport_read(client->transport, (char *)in->bytes, (int)(left < in->size ? left : in->size),
                               client->settings.network_timeout_ms);
        if (n <= 0) {
            ESP_LOGE(TAG, "the rest of a message did not come");
            mqtt_dispatch_transport_error(client);
            return ESP_FAIL;
        }
        event->topic = NULL;
        event->topic_len = 0;
        event->data = (char *)in->bytes;
        event->data_len = n;
        event->current_data_offset = (int)delivered;
        mqtt_dispatch(client, event);
        delivered += (size_t)n;
    }
    return ESP_OK;
}

static esp_err_t acknowledge(esp_mqtt_client_handle_t client, mqtt_type_t type, uint16_t id) {
    mqtt_frame_t frame = mqtt_encode_ack(&client->out, type, id);
    return mqtt_write_frame(client, &frame);
}

static esp_err_t on_publish(esp_mqtt_client_handle_t client) {
    mqtt_publish_t publish;
    if (!mqtt_decode_publish(client->in.bytes, client->in.have, client->in.total_length, &publish)) {
        ESP_LOGE(TAG, "received a malformed publish");
        return ESP_FAIL;
    }
    esp_mqtt_event_t event = {
        .event_id = MQTT_EVENT_DATA,
        .topic = (char *)(uintptr_t)publish.topic,
        .topic_len = (int)publish.topic_length,
        .data = (char *)(uintptr_t)publish.payload,
        .data_len = (int)publish.payload_length,
        .total_data_len = (int)publish.total_payload_length,
        .msg_id = publish.id,
        .qos = publish.qos,
        .dup = publish.dup,
        .retain = publish.retain,
    };
    mqtt_dispatch(client, &event);
    if (deliver_rest(client, &event, publish.payload_length, publish.total_payload_length) != ESP_OK) {
        return ESP_FAIL;
    }
    if (publish.qos == 0) {
        return ESP_OK;
    }
    return acknowledge(client, publish.qos == 1 ? MQTT_PUBACK : MQTT_PUBREC, publish.id);
}

static esp_err_t on_suback(esp_mqtt_client_handle_t client) {
    uint16_t id = 0;
    const uint8_t *codes = NULL;
    size_t count = 0;
    if (!mqtt_decode_suback(client->in.bytes, client->in.have, &id, &codes, &count)) {
        ESP_LOGE(TAG, "received a malformed SUBACK");
        return ESP_FAIL;
    }
    if (!outbox_remove_id(client->outbox, id, MQTT_SUBSCRIBE)) {
        return ESP_OK;
    }
    client->error = (esp_mqtt_error_codes_t){.error_type = MQTT_ERROR_TYPE_NONE};
    for (size_t i = 0; i < count; i++) {
        if (codes[i] >= 0x80) {
            client->error.error_type = MQTT_ERROR_TYPE_SUBSCRIBE_FAILED;
        }
    }
    esp_mqtt_event_t event = {
        .event_id = MQTT_EVENT_SUBSCRIBED,
        .msg_id = id,
        .data = (char *)(uintptr_t)codes,
        .data_len = (int)count,
        .total_data_len = (int)count,
    };
    mqtt_dispatch(client, &event);
    return ESP_OK;
}

static void on_pubrec(esp_mqtt_client_handle_t client, uint16_t id) {
    outbox_item_t *item = outbox_find(client->outbox, id);
    if (item != NULL) {
        item->state = OUTBOX_ACKNOWLEDGED;
    }
    acknowledge(client, MQTT_PUBREL, id); // a failed write shows at the next read
}

static void finished(esp_mqtt_client_handle_t client, mqtt_type_t request, esp_mqtt_event_id_t event_id,
                     uint16_t id) {
    if (outbox_remove_id(client->outbox, id, request)) {
        mqtt_dispatch_id(client, event_id, id);
    }
}

static esp_err_t on_ack(esp_mqtt_client_handle_t client, mqtt_type_t type) {
    uint16_t id = 0;
    if (!mqtt_decode_ack(client->in.bytes, client->in.have, &id)) {
        ESP_LOGE(TAG, "received a malformed acknowledgement");
        return ESP_FAIL;
    }
    switch (type) {
    case MQTT_PUBREC:
        on_pubrec(client, id);
        break;
    case MQTT_PUBREL:
        acknowledge(client, MQTT_PUBCOMP, id);
        break;
    case MQTT_UNSUBACK:
        finished(client, MQTT_UNSUBSCRIBE, MQTT_EVENT_UNSUBSCRIBED, id);
        break;
    default: // PUBACK, PUBCOMP
        finished(client, MQTT_PUBLISH, MQTT_EVENT_PUBLISHED, id);
    }
    return ESP_OK;
}

static esp_err_t handle_packet(esp_mqtt_client_handle_t client) {
    mqtt_type_t type = mqtt_type_of(client->in.bytes);
    switch (type) {
    case MQTT_PUBLISH:
        return on_publish(client);
    case MQTT_SUBACK:
        return on_suback(client);
    case MQTT_PINGRESP:
        client->waiting_for_pingresp = false;
        client->keepalive_ms = mqtt_now_ms();
        return ESP_OK;
    case MQTT_CONNACK: // a second one means nothing to esp-mqtt
        return ESP_OK;
    default:
        return on_ack(client, type);
    }
}

esp_err_t mqtt_process_incoming(esp_mqtt_client_handle_t client) {
    size_t had = client->in.have;
    mqtt_receive_t received = mqtt_receive(client, 0);
    if (received == MQTT_RECEIVED_NOTHING) {
        return ESP_OK;
    }
    if (received == MQTT_RECEIVED_PART) {
        // Nothing more since the last look, and the poll in between lasted its full time: the broker is
        // stuck.
        bool stuck = client->in.have == had;
        if (stuck) {
            ESP_LOGE(TAG, "Network timeout while reading MQTT message");
        }
        return stuck ? ESP_FAIL : ESP_OK;
    }
    if (received == MQTT_RECEIVE_FAILED) {
        return ESP_FAIL;
    }
    esp_err_t err = handle_packet(client);
    mqtt_receive_reset(client);
    return err;
}
