/* SPDX-License-Identifier: Apache-2.0 */
/* What MQTT 3.1.1 wants of a server whose only client publishes: CONNACK, PUBACK, PINGRESP. */
#include "lwip/sockets.h"
#include "private.h"

enum { CONNECT = 1, PUBLISH = 3, PINGREQ = 12 };
enum { PACKET_BYTES = 2048, LENGTH_BYTES_MAX = 4 };

static bool receive(int fd, uint8_t *bytes, size_t count) {
    size_t have = 0;
    while (have < count) {
        ssize_t got = recv(fd, bytes + have, count - have, 0);
        if (got <= 0) {
            return false;
        }
        have += (size_t)got;
    }
    return true;
}

/* Read the remaining length and the rest of the packet. */
static bool receive_rest(int fd, uint8_t packet[PACKET_BYTES], size_t *length) {
    uint8_t digit = 0x80;
    *length = 0;
    for (unsigned i = 0; i < LENGTH_BYTES_MAX && (digit & 0x80) != 0; i++) {
        if (!receive(fd, &digit, 1)) {
            return false;
        }
        *length |= (size_t)(digit & 0x7f) << (7 * i);
    }
    return (digit & 0x80) == 0 && *length <= PACKET_BYTES && receive(fd, packet, *length);
}

static bool answer(int fd, const uint8_t *bytes, size_t count) {
    return send(fd, bytes, count, 0) == (ssize_t)count;
}

/* A PUBLISH at QoS 1 has its packet's id after the topic, which begins with its length. */
static bool take_publish(int fd, cost_broker_t *broker, uint8_t flags, const uint8_t *packet, size_t length) {
    size_t at = length >= 2 ? 2 + ((size_t)packet[0] << 8 | packet[1]) : length;
    bool acknowledge = (flags & 0x06) == 0x02;
    if (acknowledge && at + 2 > length) {
        return false;
    }
    xSemaphoreGive(broker->published);
    if (!acknowledge) {
        return true;
    }
    const uint8_t puback[] = {0x40, 2, packet[at], packet[at + 1]};
    cost_mark(&broker->answered);
    return answer(fd, puback, sizeof(puback));
}

void cost_broker_serve(int fd, void *context) {
    static const uint8_t connack[] = {0x20, 2, 0, 0}, pingresp[] = {0xd0, 0};
    static uint8_t packet[PACKET_BYTES];
    cost_broker_t *broker = context;
    uint8_t first = 0;
    size_t length = 0;
    bool well = true;
    while (well && receive(fd, &first, 1) && receive_rest(fd, packet, &length)) {
        if (first >> 4 == CONNECT) {
            well = answer(fd, connack, sizeof(connack));
        } else if (first >> 4 == PUBLISH) {
            well = take_publish(fd, broker, first & 0x0f, packet, length);
        } else if (first >> 4 == PINGREQ) {
            well = answer(fd, pingresp, sizeof(pingresp));
        } else { /* DISCONNECT, or what this client does not send */
            well = false;
        }
    }
}
