/* SPDX-License-Identifier: Apache-2.0 */
#include "packet.h"

#include <string.h>

// The packet's body is written behind the space of the longest fixed header; the header is then put right
// before it. So the first piece of a long publish is up to three bytes shorter than the buffer, as with
// esp-mqtt.
#define HEADER_SPACE 5u
#define MAX_REMAINING_LENGTH 268435455u

typedef struct {
    mqtt_out_buffer_t *out;
    size_t length;
    bool failed;
} writer_t;

static writer_t begin(mqtt_out_buffer_t *out) {
    return (writer_t){.out = out, .length = HEADER_SPACE, .failed = out->size < HEADER_SPACE};
}

static void put(writer_t *w, const void *bytes, size_t count) {
    if (w->failed || count > w->out->size - w->length) {
        w->failed = true;
        return;
    }
    if (count > 0) {
        memcpy(w->out->bytes + w->length, bytes, count);
        w->length += count;
    }
}

static void put_u8(writer_t *w, unsigned value) {
    put(w, &(uint8_t){(uint8_t)value}, 1);
}

static void put_u16(writer_t *w, unsigned value) {
    put_u8(w, value >> 8);
    put_u8(w, value & 0xff);
}

static void put_string(writer_t *w, const char *text) {
    size_t length = strlen(text);
    w->failed |= length > UINT16_MAX;
    put_u16(w, (unsigned)length);
    put(w, text, length);
}

// `following` bytes of the packet are not in the buffer.
static mqtt_frame_t finish(writer_t *w, mqtt_type_t type, unsigned flags, size_t following) {
    size_t remaining = w->length - HEADER_SPACE + following;
    if (w->failed || remaining > MAX_REMAINING_LENGTH) {
        return (mqtt_frame_t){0};
    }
    uint8_t header[HEADER_SPACE] = {(uint8_t)((unsigned)type << 4 | flags)};
    size_t used = 1;
    do {
        header[used++] = (uint8_t)((remaining & 0x7f) | (remaining > 0x7f ? 0x80u : 0u));
        remaining >>= 7;
    } while (remaining > 0);
    uint8_t *start = w->out->bytes + HEADER_SPACE - used;
    memcpy(start, header, used);
    return (mqtt_frame_t){.data = start, .length = w->length - HEADER_SPACE + used};
}

static unsigned connect_flags(const mqtt_connect_t *connect) {
    unsigned flags = connect->clean_session ? 0x02 : 0;
    // A password without a user name would be malformed [MQTT-3.1.2-22]: an empty name is sent then.
    flags |= connect->username != NULL || connect->password != NULL ? 0x80 : 0;
    return flags | (connect->password != NULL ? 0x40 : 0);
}

mqtt_frame_t mqtt_encode_connect(mqtt_out_buffer_t *out, const mqtt_connect_t *connect) {
    unsigned flags = connect_flags(connect);
    writer_t w = begin(out);
    put_string(&w, "MQTT");
    put_u8(&w, 4);
    put_u8(&w, flags);
    put_u16(&w, connect->keepalive_s);
    put_string(&w, connect->client_id != NULL ? connect->client_id : "");
    if (flags & 0x80) {
        put_string(&w, connect->username != NULL ? connect->username : "");
    }
    if (flags & 0x40) {
        put_string(&w, connect->password);
    }
    return finish(&w, MQTT_CONNECT, 0, 0);
}

mqtt_frame_t mqtt_encode_publish(mqtt_out_buffer_t *out, const char *topic, const void *payload,
                                 size_t payload_length, int qos, bool retain, uint16_t id) {
    writer_t w = begin(out);
    w.failed |=
        topic == NULL || topic[0] == '\0' || qos < 0 || qos > 2 || (payload == NULL && payload_length > 0);
    put_string(&w, topic != NULL ? topic : "");
    if (qos > 0) {
        put_u16(&w, id);
    }
    size_t room = w.failed ? 0 : out->size - w.length;
    size_t taken = payload_length < room ? payload_length : room;
    put(&w, payload, taken);
    mqtt_frame_t frame =
        finish(&w, MQTT_PUBLISH, (unsigned)qos << 1 | (retain ? 1 : 0), payload_length - taken);
    frame.payload_taken = taken;
    return frame;
}

mqtt_frame_t mqtt_encode_subscribe(mqtt_out_buffer_t *out, const char *const *filters, const int *qos,
                                   size_t count, uint16_t id) {
    writer_t w = begin(out);
    put_u16(&w, id);
    w.failed |= count == 0;
    for (size_t i = 0; i < count; i++) {
        w.failed |= filters[i][0] == '\0' || qos[i] < 0 || qos[i] > 2;
        put_string(&w, filters[i]);
        put_u8(&w, (unsigned)qos[i]);
    }
    return finish(&w, MQTT_SUBSCRIBE, 2, 0);
}

mqtt_frame_t mqtt_encode_unsubscribe(mqtt_out_buffer_t *out, const char *filter, uint16_t id) {
    writer_t w = begin(out);
    w.failed |= filter == NULL || filter[0] == '\0';
    put_u16(&w, id);
    put_string(&w, filter != NULL ? filter : "");
    return finish(&w, MQTT_UNSUBSCRIBE, 2, 0);
}

mqtt_frame_t mqtt_encode_ack(mqtt_out_buffer_t *out, mqtt_type_t type, uint16_t id) {
    writer_t w = begin(out);
    put_u16(&w, id);
    return finish(&w, type, type == MQTT_PUBREL ? 2 : 0, 0);
}

mqtt_frame_t mqtt_encode_empty(mqtt_out_buffer_t *out, mqtt_type_t type) {
    writer_t w = begin(out);
    return finish(&w, type, 0, 0);
}

void mqtt_set_dup(uint8_t *packet) {
    packet[0] |= 0x08;
}
