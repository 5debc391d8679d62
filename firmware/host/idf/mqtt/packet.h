/* SPDX-License-Identifier: Apache-2.0 */
// MQTT 3.1.1 packets, bytes only: no sockets, no state. The decoder is fed by a broker that may be hostile,
// so every length is checked against what was received.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum {
    MQTT_CONNECT = 1,
    MQTT_CONNACK = 2,
    MQTT_PUBLISH = 3,
    MQTT_PUBACK = 4,
    MQTT_PUBREC = 5,
    MQTT_PUBREL = 6,
    MQTT_PUBCOMP = 7,
    MQTT_SUBSCRIBE = 8,
    MQTT_SUBACK = 9,
    MQTT_UNSUBSCRIBE = 10,
    MQTT_UNSUBACK = 11,
    MQTT_PINGREQ = 12,
    MQTT_PINGRESP = 13,
    MQTT_DISCONNECT = 14,
} mqtt_type_t;

// ---- encoding ----

// Where packets are put together; one for each client, used under its API lock.
typedef struct {
    uint8_t *bytes;
    size_t size;
} mqtt_out_buffer_t;

// An encoded packet, within the out buffer. length 0: it did not fit or its arguments were not valid.
typedef struct {
    uint8_t *data;
    size_t length;
    size_t payload_taken; // PUBLISH: payload bytes within this first piece; the rest follows it on the wire
} mqtt_frame_t;

typedef struct {
    const char *client_id; // NULL: empty, the broker assigns one
    const char *username;  // NULL: none
    const char *password;
    uint16_t keepalive_s;
    bool clean_session;
} mqtt_connect_t;

mqtt_frame_t mqtt_encode_connect(mqtt_out_buffer_t *out, const mqtt_connect_t *connect);
// A payload that does not fit is cut where the out buffer ends, at the byte where esp-mqtt cuts it.
mqtt_frame_t mqtt_encode_publish(mqtt_out_buffer_t *out, const char *topic, const void *payload,
                                 size_t payload_length, int qos, bool retain, uint16_t id);
mqtt_frame_t mqtt_encode_subscribe(mqtt_out_buffer_t *out, const char *const *filters, const int *qos,
                                   size_t count, uint16_t id);
mqtt_frame_t mqtt_encode_unsubscribe(mqtt_out_buffer_t *out, const char *filter, uint16_t id);
// PUBACK, PUBREC, PUBREL, PUBCOMP.
mqtt_frame_t mqtt_encode_ack(mqtt_out_buffer_t *out, mqtt_type_t type, uint16_t id);
// PINGREQ, DISCONNECT.
mqtt_frame_t mqtt_encode_empty(mqtt_out_buffer_t *out, mqtt_type_t type);
void mqtt_set_dup(uint8_t *packet);

// ---- decoding ----

static inline mqtt_type_t mqtt_type_of(const uint8_t *packet) {
    return (mqtt_type_t)(packet[0] >> 4);
}

static inline int mqtt_qos_of(const uint8_t *packet) {
    return (packet[0] >> 1) & 3;
}

// May a broker send this first byte? Type and flag bits as in MQTT 3.1.1, 2.2.2.
bool mqtt_first_byte_valid(uint8_t first);

typedef enum { MQTT_LENGTH_OK, MQTT_LENGTH_INCOMPLETE, MQTT_LENGTH_MALFORMED } mqtt_length_status_t;

// Reads the remaining length: *header_length = bytes of the fixed header, *total_length = the whole packet.
mqtt_length_status_t mqtt_decode_length(const uint8_t *packet, size_t have, size_t *header_length,
                                        size_t *total_length);

typedef struct {
    const char *topic; // points into the packet, not NUL-terminated
    size_t topic_length;
    const char *payload;         // NULL when payload_length is 0
    size_t payload_length;       // within the bytes at hand
    size_t total_payload_length; // of the message
    uint16_t id;                 // 0 at QoS 0
    int qos;
    bool dup;
    bool retain;
} mqtt_publish_t;

// `have` bytes of a packet of total_length are at hand. false: malformed, or topic and id are not within
// `have`.
bool mqtt_decode_publish(const uint8_t *packet, size_t have, size_t total_length, mqtt_publish_t *publish);
bool mqtt_decode_connack(const uint8_t *packet, size_t length, bool *session_present, uint8_t *return_code);
// PUBACK, PUBREC, PUBREL, PUBCOMP, UNSUBACK.
bool mqtt_decode_ack(const uint8_t *packet, size_t length, uint16_t *id);
bool mqtt_decode_suback(const uint8_t *packet, size_t length, uint16_t *id, const uint8_t **codes,
                        size_t *count);
