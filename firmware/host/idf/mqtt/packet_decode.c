/* SPDX-License-Identifier: Apache-2.0 */
#include "packet.h"

#define ACK_LENGTH 4 // fixed header 2, packet identifier 2

static unsigned u16_at(const uint8_t *bytes) {
    return (unsigned)bytes[0] << 8 | bytes[1];
}

bool mqtt_first_byte_valid(uint8_t first) {
    unsigned flags = first & 0x0f;
    switch (first >> 4) {
    case MQTT_PUBLISH: {
        unsigned qos = (flags >> 1) & 3;
        bool dup = (flags & 8) != 0;
        return qos < 3 && (qos > 0 || !dup); // [MQTT-3.3.1-4], [MQTT-3.3.1-2]
    }
    case MQTT_PUBREL:
        return flags == 2;
    case MQTT_CONNACK:
    case MQTT_PUBACK:
    case MQTT_PUBREC:
    case MQTT_PUBCOMP:
    case MQTT_SUBACK:
    case MQTT_UNSUBACK:
    case MQTT_PINGRESP:
        return flags == 0;
    default:
        return false;
    }
}

mqtt_length_status_t mqtt_decode_length(const uint8_t *packet, size_t have, size_t *header_length,
                                        size_t *total_length) {
    size_t remaining = 0;
    for (size_t i = 1; i <= 4; i++) {
        if (i >= have) {
            return MQTT_LENGTH_INCOMPLETE;
        }
        remaining |= (size_t)(packet[i] & 0x7f) << (7 * (i - 1));
        if ((packet[i] & 0x80) == 0) {
            *header_length = i + 1;
            *total_length = i + 1 + remaining;
            return MQTT_LENGTH_OK;
        }
    }
    return MQTT_LENGTH_MALFORMED;
}

bool mqtt_decode_publish(const uint8_t *packet, size_t have, size_t total_length, mqtt_publish_t *publish) {
    size_t header = 0, total = 0;
    if (mqtt_decode_length(packet, have, &header, &total) != MQTT_LENGTH_OK || total != total_length ||
        have > total || header + 2 > have) {
        return false;
    }
    size_t topic_length = u16_at(packet + header);
    size_t id_length = mqtt_qos_of(packet) > 0 ? 2 : 0;
    size_t payload_at = header + 2 + topic_length + id_length;
    if (payload_at > have) {
        return false;
    }
    *publish = (mqtt_publish_t){
        .topic = (const char *)packet + header + 2,
        .topic_length = topic_length,
        .payload = have > payload_at ? (const char *)packet + payload_at : NULL,
        .payload_length = have - payload_at,
        .total_payload_length = total - payload_at,
        .id = id_length > 0 ? (uint16_t)u16_at(packet + payload_at - 2) : 0,
        .qos = mqtt_qos_of(packet),
        .dup = (packet[0] & 8) != 0,
        .retain = (packet[0] & 1) != 0,
    };
    return publish->qos == 0 || publish->id != 0;
}

bool mqtt_decode_connack(const uint8_t *packet, size_t length, bool *session_present, uint8_t *return_code) {
    if (length != 4 || packet[1] != 2) {
        return false;
    }
    *session_present = (packet[2] & 1) != 0;
    *return_code = packet[3];
    return true;
}

bool mqtt_decode_ack(const uint8_t *packet, size_t length, uint16_t *id) {
    if (length != ACK_LENGTH || packet[1] != 2) {
        return false;
    }
    *id = (uint16_t)u16_at(packet + 2);
    return true;
}

bool mqtt_decode_suback(const uint8_t *packet, size_t length, uint16_t *id, const uint8_t **codes,
                        size_t *count) {
    size_t header = 0, total = 0;
    if (mqtt_decode_length(packet, length, &header, &total) != MQTT_LENGTH_OK || total != length ||
        length < header + 3) {
        return false;
    }
    *id = (uint16_t)u16_at(packet + header);
    *codes = packet + header + 2;
    *count = length - header - 2;
    return true;
}
