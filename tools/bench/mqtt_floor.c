/* SPDX-License-Identifier: Apache-2.0 */
/* The floor under every MQTT figure of this rack: a blocking socket, no RTOS, no client library.
 *
 *   gcc -O2 -Wall -Wextra -o mqtt_floor tools/bench/mqtt_floor.c
 *   mqtt_floor HOST PORT COUNT INTERVAL_US random|periodic PAYLOAD_BYTES [SEED]
 *
 * Connects, then publishes COUNT times at QoS 1 with TCP_NODELAY, one at a time: send, wait for the PUBACK.
 * Prints CSV: planned_us,send_us,puback_us since the first plan, rtt_us from right before send() to right
 * after recv(). A random interval is uniform in 0.5 .. 1.5 of INTERVAL_US (xorshift32 of SEED). Not open
 * loop: a PUBACK that comes after the next plan delays that send, and planned_us shows it.
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define TOPIC "hil/floor/publish"
#define PAYLOAD_MAX_BYTES 8192
#define HEADER_MAX_BYTES 5
#define TIMEOUT_S 10

typedef struct {
    int64_t planned_us, send_us, puback_us;
} sample_t;

static int64_t now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void sleep_until_us(int64_t when_us) {
    struct timespec t = {.tv_sec = when_us / 1000000, .tv_nsec = when_us % 1000000 * 1000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR) {
    }
}

static void die(const char *what) {
    fprintf(stderr, "mqtt_floor: %s: %s\n", what, errno != 0 ? strerror(errno) : "unexpected answer");
    exit(1);
}

static int connect_to(const char *host, const char *port) {
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    if (getaddrinfo(host, port, &hints, &found) != 0) {
        die("resolving the host");
    }
    int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int on = 1;
    const struct timeval timeout = {.tv_sec = TIMEOUT_S};
    if (fd < 0 || connect(fd, found->ai_addr, found->ai_addrlen) != 0) {
        die("connecting");
    }
    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) != 0 ||
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) != 0) {
        die("setting socket options");
    }
    freeaddrinfo(found);
    return fd;
}

static void send_all(int fd, const uint8_t *bytes, size_t length) {
    while (length > 0) {
        ssize_t n = send(fd, bytes, length, MSG_NOSIGNAL);
        if (n < 0) {
            die("sending");
        }
        bytes += n;
        length -= (size_t)n;
    }
}

/* All answers this client gets, CONNACK and PUBACK, have four bytes. */
static void receive_answer(int fd, uint8_t first, uint8_t third, uint8_t fourth) {
    uint8_t answer[4];
    errno = 0;
    if (recv(fd, answer, sizeof(answer), MSG_WAITALL) != (ssize_t)sizeof(answer)) {
        die("waiting for an answer");
    }
    if (answer[0] != first || answer[1] != 2 || answer[2] != third || answer[3] != fourth) {
        die("reading an answer");
    }
}

static size_t put_header(uint8_t *packet, uint8_t first, size_t remaining) {
    size_t used = 0;
    packet[used++] = first;
    do {
        packet[used++] = (uint8_t)((remaining & 0x7f) | (remaining > 0x7f ? 0x80 : 0));
        remaining >>= 7;
    } while (remaining > 0);
    return used;
}

static void mqtt_connect(int fd) {
    static const uint8_t packet[] = {0x10, 21, 0,   4,   'M', 'Q', 'T', 'T', 4,   2,   0,  120,
                                     0,    9,  'h', 'i', 'l', '-', 'f', 'l', 'o', 'o', 'r'};
    send_all(fd, packet, sizeof(packet));
    receive_answer(fd, 0x20, 0, 0);
}

static size_t make_publish(uint8_t *packet, size_t payload_bytes, uint16_t id) {
    const size_t topic_bytes = sizeof(TOPIC) - 1;
    size_t at = put_header(packet, 0x32, 2 + topic_bytes + 2 + payload_bytes);
    packet[at++] = 0;
    packet[at++] = (uint8_t)topic_bytes;
    memcpy(packet + at, TOPIC, topic_bytes);
    at += topic_bytes;
    packet[at++] = (uint8_t)(id >> 8);
    packet[at++] = (uint8_t)id;
    memset(packet + at, 'x', payload_bytes);
    return at + payload_bytes;
}

static sample_t publish(int fd, int64_t planned_us, size_t payload_bytes, uint16_t id) {
    static uint8_t packet[HEADER_MAX_BYTES + 2 + sizeof(TOPIC) + 2 + PAYLOAD_MAX_BYTES];
    size_t length = make_publish(packet, payload_bytes, id);
    sleep_until_us(planned_us);
    sample_t sample = {.planned_us = planned_us, .send_us = now_us()};
    send_all(fd, packet, length);
    receive_answer(fd, 0x40, (uint8_t)(id >> 8), (uint8_t)id);
    sample.puback_us = now_us();
    return sample;
}

static uint32_t next_random(uint32_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

static long number(const char *text, long min, long max, const char *what) {
    char *end = NULL;
    long value = strtol(text, &end, 10);
    if (end == text || *end != '\0' || value < min || value > max) {
        fprintf(stderr, "mqtt_floor: %s: %s is not a number from %ld to %ld\n", what, text, min, max);
        exit(2);
    }
    return value;
}

static void print_samples(const sample_t *samples, long count) {
    puts("planned_us,send_us,puback_us,rtt_us");
    for (long i = 0; i < count; i++) {
        const int64_t start_us = samples[0].planned_us;
        printf("%lld,%lld,%lld,%lld\n", (long long)(samples[i].planned_us - start_us),
               (long long)(samples[i].send_us - start_us), (long long)(samples[i].puback_us - start_us),
               (long long)(samples[i].puback_us - samples[i].send_us));
    }
}

int main(int argc, char **argv) {
    if (argc < 7 || argc > 8 || (strcmp(argv[5], "random") != 0 && strcmp(argv[5], "periodic") != 0)) {
        fprintf(stderr,
                "usage: mqtt_floor HOST PORT COUNT INTERVAL_US random|periodic PAYLOAD_BYTES [SEED]\n");
        return 2;
    }
    long count = number(argv[3], 1, 65535, "COUNT");
    uint32_t interval_us = (uint32_t)number(argv[4], 1, 60000000, "INTERVAL_US");
    bool random = strcmp(argv[5], "random") == 0;
    size_t payload_bytes = (size_t)number(argv[6], 0, PAYLOAD_MAX_BYTES, "PAYLOAD_BYTES");
    uint32_t state = argc == 8 ? (uint32_t)number(argv[7], 1, UINT32_MAX, "SEED") : 1;
    sample_t *samples = calloc((size_t)count, sizeof(*samples));
    int fd = connect_to(argv[1], argv[2]);
    mqtt_connect(fd);
    int64_t planned_us = now_us() + interval_us;
    for (long i = 0; i < count; i++) {
        samples[i] = publish(fd, planned_us, payload_bytes, (uint16_t)(i + 1));
        planned_us += random ? interval_us / 2 + next_random(&state) % (interval_us + 1) : interval_us;
    }
    close(fd);
    print_samples(samples, count);
    free(samples);
    return 0;
}
