/* SPDX-License-Identifier: Apache-2.0 */
// Puts packets together from what the transport delivers, at most one at a time.
#include "client_priv.h"
#include "esp_log.h"

static const char *TAG = "mqtt_client";

void mqtt_receive_reset(esp_mqtt_client_handle_t client) {
    client->in.have = 0;
    client->in.total_length = 0;
}

static bool header_known(const mqtt_in_buffer_t *in) {
    return in->total_length > 0;
}

static size_t buffered_part(const mqtt_in_buffer_t *in) {
    return in->total_length < in->size ? in->total_length : in->size;
}

// Looks at the fixed header as far as it is there. false: malformed.
static bool look_at_header(mqtt_in_buffer_t *in) {
    size_t header_length = 0, total_length = 0;
    if (!mqtt_first_byte_valid(in->bytes[0])) {
        ESP_LOGE(TAG, "received a message with an invalid header=0x%x", in->bytes[0]);
        return false;
    }
    switch (mqtt_decode_length(in->bytes, in->have, &header_length, &total_length)) {
    case MQTT_LENGTH_INCOMPLETE:
        return true;
    case MQTT_LENGTH_MALFORMED:
        ESP_LOGE(TAG, "received a message with a malformed length");
        return false;
    default:
        in->total_length = total_length;
    }
    // A publish may be longer than the buffer: its payload is then delivered in pieces.
    if (total_length > in->size && mqtt_type_of(in->bytes) != MQTT_PUBLISH) {
        ESP_LOGE(TAG, "message is too big, insufficient buffer size");
        return false;
    }
    return true;
}

// Header bytes come one by one, so that nothing of the next packet is taken.
static size_t bytes_wanted(const mqtt_in_buffer_t *in) {
    return header_known(in) ? buffered_part(in) - in->have : 1;
}

static mqtt_receive_t read_failed(esp_mqtt_client_handle_t client, int result) {
    if (result == ERR_TCP_TRANSPORT_CONNECTION_TIMEOUT) {
        return client->in.have > 0 ? MQTT_RECEIVED_PART : MQTT_RECEIVED_NOTHING;
    }
    ESP_LOGE(TAG, "transport_read(): %s",
             result == ERR_TCP_TRANSPORT_CONNECTION_CLOSED_BY_FIN ? "EOF" : "error");
    mqtt_dispatch_transport_error(client);
    return MQTT_RECEIVE_FAILED;
}

mqtt_receive_t mqtt_receive(esp_mqtt_client_handle_t client, int timeout_ms) {
    mqtt_in_buffer_t *in = &client->in;
    while (!header_known(in) || in->have < buffered_part(in)) {
        if (in->have == in->size) { // a buffer too small for any header
            return MQTT_RECEIVE_FAILED;
        }
        int n = esp_transport_read(client->transport, (char *)in->bytes + in->have, (int)bytes_wanted(in),
                                   timeout_ms);
        if (n <= 0) {
            return read_failed(client, n);
        }
        in->have += (size_t)n;
        if (!header_known(in) && !look_at_header(in)) {
            mqtt_dispatch_transport_error(client);
            return MQTT_RECEIVE_FAILED;
        }
    }
    return MQTT_RECEIVED_PACKET;
}
