/* SPDX-License-Identifier: Apache-2.0 */
// The packet codec and the outbox on their own: known bytes, cut and hostile bytes, random bytes. With
// libFuzzer
// (-DHIL_FUZZER -fsanitize=fuzzer) the same source is the decoder's fuzz target.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../idf/mqtt/outbox.h"
#include "../idf/mqtt/packet.h"

#define CHECK(condition)                                                                                     \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "%s:%d: %s: not true: %s\n", __FILE__, __LINE__, __func__, #condition);          \
            exit(1);                                                                                         \
        }                                                                                                    \
    } while (0)

// Reads every byte that a decoded view points at, so that a sanitizer sees a wrong one.
static unsigned touch(const void *bytes, size_t length) {
    unsigned sum = 0;
    for (size_t i = 0; i < length; i++) {
        sum += ((const uint8_t *)bytes)[i];
    }
    return sum;
}

static unsigned decode_anything(const uint8_t *packet, size_t have) {
    size_t header = 0, total = 0, count = 0;
    uint16_t id = 0;
    uint8_t code = 0;
    bool present = false;
    const uint8_t *codes = NULL;
    mqtt_publish_t publish;
    unsigned sum = 0;
    if (have == 0 || !mqtt_first_byte_valid(packet[0])) {
        return 0;
    }
    if (mqtt_decode_length(packet, have, &header, &total) == MQTT_LENGTH_OK) {
        CHECK(header <= have && header <= 5 && total >= header);
        size_t buffered = have < total ? have : total;
        if (mqtt_decode_publish(packet, buffered, total, &publish)) {
            CHECK(publish.payload_length <= publish.total_payload_length);
            sum +=
                touch(publish.topic, publish.topic_length) + touch(publish.payload, publish.payload_length);
        }
    }
    if (mqtt_decode_suback(packet, have, &id, &codes, &count)) {
        sum += touch(codes, count);
    }
    return sum + mqtt_decode_ack(packet, have, &id) + mqtt_decode_connack(packet, have, &present, &code);
}

// In memory of exactly its size, so that reading one byte too far is seen.
static unsigned decode_copy(const uint8_t *bytes, size_t length) {
    uint8_t *copy = malloc(length > 0 ? length : 1);
    memcpy(copy, bytes, length);
    unsigned sum = decode_anything(copy, length);
    free(copy);
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    decode_copy(data, size);
    return 0;
}

#ifndef HIL_FUZZER

// Rule: CONNECT is the bytes of MQTT 3.1.1, 3.1.
static void connect_bytes(void) {
    uint8_t bytes[64];
    mqtt_out_buffer_t out = {bytes, sizeof(bytes)};
    mqtt_connect_t connect = {.client_id = "ab", .password = "p", .keepalive_s = 258, .clean_session = true};
    mqtt_frame_t f = mqtt_encode_connect(&out, &connect);
    static const uint8_t expected[] = {0x10, 19, 0, 4,   'M', 'Q', 'T', 'T', 4, 0xc2, 1,
                                       2,    0,  2, 'a', 'b', 0,   0,   0,   1, 'p'};
    CHECK(f.length == sizeof(expected) && memcmp(f.data, expected, f.length) == 0);
}

// Rule: a publish that does not fit is cut at the end of the out buffer and announces its full length.
static void long_publish_is_cut(void) {
    uint8_t bytes[64], payload[200];
    mqtt_out_buffer_t out = {bytes, sizeof(bytes)};
    memset(payload, 'x', sizeof(payload));
    mqtt_frame_t f = mqtt_encode_publish(&out, "t/x", payload, sizeof(payload), 1, false, 7);
    CHECK(f.payload_taken == 64 - 5 - 5 - 2);
    size_t header = 0, total = 0;
    CHECK(mqtt_decode_length(f.data, f.length, &header, &total) == MQTT_LENGTH_OK);
    CHECK(total == header + 5 + 2 + sizeof(payload) && f.length == 64 - 5 + header);
    mqtt_publish_t p;
    CHECK(mqtt_decode_publish(f.data, f.length, total, &p));
    CHECK(p.id == 7 && p.qos == 1 && p.topic_length == 3 && p.payload_length == f.payload_taken);
    CHECK(p.total_payload_length == sizeof(payload));
}

// Rule: what is not valid is not encoded.
static void invalid_is_refused(void) {
    uint8_t bytes[16];
    mqtt_out_buffer_t out = {bytes, sizeof(bytes)};
    const char *empty = "", *longer = "a/topic/longer/than/the/buffer";
    int qos = 0;
    CHECK(mqtt_encode_publish(&out, "", "x", 1, 0, false, 0).length == 0);
    CHECK(mqtt_encode_publish(&out, NULL, "x", 1, 0, false, 0).length == 0);
    CHECK(mqtt_encode_publish(&out, "t", "x", 1, 3, false, 1).length == 0);
    CHECK(mqtt_encode_publish(&out, "t", NULL, 1, 0, false, 0).length == 0);
    CHECK(mqtt_encode_publish(&out, longer, "x", 1, 0, false, 0).length == 0);
    CHECK(mqtt_encode_subscribe(&out, &empty, &qos, 1, 1).length == 0);
    CHECK(mqtt_encode_subscribe(&out, &longer, &qos, 1, 1).length == 0);
    CHECK(mqtt_encode_unsubscribe(&out, NULL, 1).length == 0);
}

// Rule: acknowledgements have exactly two bytes, and PUBREL its flag.
static void acknowledgements(void) {
    uint8_t bytes[16];
    mqtt_out_buffer_t out = {bytes, sizeof(bytes)};
    uint16_t id = 0;
    mqtt_frame_t f = mqtt_encode_ack(&out, MQTT_PUBREL, 0x1234);
    CHECK(f.length == 4 && f.data[0] == 0x62 && mqtt_decode_ack(f.data, 4, &id) && id == 0x1234);
    CHECK(!mqtt_decode_ack((const uint8_t[]){0x40, 3, 0, 1, 0}, 5, &id));
    CHECK(!mqtt_decode_ack((const uint8_t[]){0x40, 1, 0}, 3, &id));
}

// Rule: a length of more than four bytes is malformed, one that is not there yet is incomplete.
static void lengths(void) {
    size_t header = 0, total = 0;
    const uint8_t endless[] = {0x30, 0xff, 0xff, 0xff, 0xff, 0x01},
                  largest[] = {0x30, 0xff, 0xff, 0xff, 0x7f};
    CHECK(mqtt_decode_length(endless, 6, &header, &total) == MQTT_LENGTH_MALFORMED);
    CHECK(mqtt_decode_length(endless, 3, &header, &total) == MQTT_LENGTH_INCOMPLETE);
    CHECK(mqtt_decode_length(largest, 5, &header, &total) == MQTT_LENGTH_OK && total == 268435455u + 5);
}

// Rule: types a broker may not send, and wrong flag bits, are refused.
static void first_bytes(void) {
    CHECK(mqtt_first_byte_valid(0x20) && mqtt_first_byte_valid(0x62) && mqtt_first_byte_valid(0x3d));
    CHECK(!mqtt_first_byte_valid(0x00) && !mqtt_first_byte_valid(0x10) && !mqtt_first_byte_valid(0x82));
    CHECK(!mqtt_first_byte_valid(0xf0) && !mqtt_first_byte_valid(0x60) && !mqtt_first_byte_valid(0x41));
    CHECK(!mqtt_first_byte_valid(0x36) && !mqtt_first_byte_valid(0x38)); // QoS 3; DUP at QoS 0
}

// Rule: a publish whose topic or id reaches past its end is malformed, wherever it is cut.
static void cut_publishes(void) {
    const uint8_t packet[] = {0x32, 9, 0, 3, 'a', '/', 'b', 0, 5, 'h', 'i'};
    mqtt_publish_t p;
    for (size_t have = 0; have < 9; have++) {
        CHECK(!mqtt_decode_publish(packet, have, sizeof(packet), &p));
    }
    CHECK(mqtt_decode_publish(packet, 9, sizeof(packet), &p) && p.payload == NULL &&
          p.total_payload_length == 2);
    CHECK(mqtt_decode_publish(packet, 11, sizeof(packet), &p) && p.id == 5 &&
          memcmp(p.payload, "hi", 2) == 0);
    const uint8_t long_topic[] = {0x30, 4, 0xff, 0xff, 'a', 'b'}, zero_id[] = {0x32, 5, 0, 1, 'a', 0, 0};
    CHECK(!mqtt_decode_publish(long_topic, 6, 6, &p));
    CHECK(!mqtt_decode_publish(zero_id, 7, 7, &p)); // [MQTT-2.3.1-1]
}

// Rule: no bytes whatever make the decoder read past them (run under ASan).
static void random_bytes(void) {
    static const uint8_t firsts[] = {0x20, 0x30, 0x32, 0x3d, 0x40, 0x50, 0x62, 0x70, 0x90, 0xb0, 0xd0};
    uint32_t state = 1;
    unsigned sum = 0;
    for (int round = 0; round < 200000; round++) {
        uint8_t bytes[24];
        for (size_t i = 0; i < sizeof(bytes); i++) {
            state = state * 1664525u + 1013904223u;
            bytes[i] = (uint8_t)(state >> 24 & (i < 4 ? 0x1f : 0xff));
        }
        bytes[0] = firsts[(state >> 8) % sizeof(firsts)];
        sum += decode_copy(bytes, (state >> 16) % sizeof(bytes));
    }
    CHECK(sum > 0); // some did decode
}

// Rule: the outbox keeps order, counts bytes, and expires by age.
static void outbox_order(void) {
    uint8_t packet[] = {0x32, 1};
    mqtt_frame_t frame = {.data = packet, .length = sizeof(packet)};
    outbox_t *box = outbox_create();
    outbox_add(box, MQTT_PUBLISH, 1, 1, &frame, "rest", 4, 1000);
    outbox_add(box, MQTT_PUBLISH, 2, 2, &frame, NULL, 0, 2000);
    CHECK(outbox_size_bytes(box) == 8);
    CHECK(outbox_first(box, OUTBOX_QUEUED)->id == 1 && outbox_first(box, OUTBOX_TRANSMITTED) == NULL);
    CHECK(memcmp(outbox_find(box, 1)->packet + 2, "rest", 4) == 0);
    outbox_find(box, 1)->state = OUTBOX_TRANSMITTED;
    CHECK(outbox_first(box, OUTBOX_QUEUED)->id == 2);
    CHECK(!outbox_remove_id(box, 1, MQTT_SUBSCRIBE)); // the type counts too
    CHECK(outbox_remove_expired(box, 31000, 30000) == -1);
    CHECK(outbox_remove_expired(box, 31001, 30000) == 1 && outbox_size_bytes(box) == 2);
    CHECK(outbox_remove_id(box, 2, MQTT_PUBLISH) && outbox_size_bytes(box) == 0);
    outbox_destroy(box);
}

int main(void) {
    connect_bytes();
    long_publish_is_cut();
    invalid_is_refused();
    acknowledgements();
    lengths();
    first_bytes();
    cut_publishes();
    random_bytes();
    outbox_order();
    puts("ok");
    return 0;
}

#endif
