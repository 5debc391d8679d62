/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the device's TCP has transmitted each message of a burst, by its own counters.
 *
 * A message's end is a position in its connection's byte stream as TCP counts it, so this holds under TLS as
 * well. The counters are sampled after each publish, every 50 ms, and where the client sees an error, which
 * is before it closes the socket.
 */
#pragma once

#include "agent/bench.h"
#include "freertos/FreeRTOS.h"
#include "freertos/semphr.h"
#include "freertos/task.h"
#include "link/tcp_counters.h"
#include "mqtt_link/link.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Values of a column `tcp`. */
enum {
    MQTT_TCP_NOTHING,           /* nothing is known to have been written */
    MQTT_TCP_NEVER_TRANSMITTED, /* the last byte of it never left */
    MQTT_TCP_TRANSMITTED,
    MQTT_TCP_ACKNOWLEDGED,
    MQTT_TCP_UNKNOWN,
};

enum { MQTT_TCP_WATCH_CONNECTIONS = 64 }; /* of a run that are remembered; of older ones nothing is known */

typedef struct {
    uint32_t number; /* 0: none */
    uint32_t start, acked, transmitted, written;
    bool ended;
} mqtt_tcp_connection_t;

typedef struct {
    uint32_t end;        /* of the message, in its connection's stream */
    uint16_t connection; /* modulo 2^16; 0: not written by the publisher's task */
    bool later;          /* it may have been written later, by the mqtt task */
} mqtt_tcp_message_t;

typedef struct {
    /* Set these before mqtt_tcp_watch_create(). */
    const mqtt_link_t *link;
    size_t message_bytes; /* each message takes at least so much of the stream */
    bool resends;         /* what a connection did not take is sent again on the next one: QoS 1, 2 */

    SemaphoreHandle_t mutex; /* guards what follows */
    int socket_fd;           /* -1: not connected */
    uint32_t connections;    /* so far */
    mqtt_tcp_connection_t known[MQTT_TCP_WATCH_CONNECTIONS];
    link_tcp_counters_t last;
    bool sampled; /* there is a last one */

    mqtt_tcp_message_t *messages; /* of this burst: the publisher's task's */
    uint32_t floor;               /* end of the message last asked for, and its connection */
    uint16_t floor_connection;
    SemaphoreHandle_t stop, stopped;
} mqtt_tcp_watch_t;

/* Returns ESP_ERR_NO_MEM; mqtt_tcp_watch_delete() afterwards all the same. */
esp_err_t mqtt_tcp_watch_create(mqtt_tcp_watch_t *watch, size_t capacity);
void mqtt_tcp_watch_delete(mqtt_tcp_watch_t *watch);

/* Before a burst of `rows` messages. */
void mqtt_tcp_watch_begin(mqtt_tcp_watch_t *watch, size_t rows);

/* Every event of the connection, in its handler. */
void mqtt_tcp_watch_on_event(mqtt_tcp_watch_t *watch, const esp_mqtt_event_t *event);

/* Number of the connection that there is, from 1; 0 where there is none. */
uint32_t mqtt_tcp_watch_connection(mqtt_tcp_watch_t *watch);

/* A message was handed over with this result of the publish call, `connection` being the one before the call;
 * `stored` where the call only stored it. Returns the number of the connection that took it, or 0. */
uint32_t mqtt_tcp_watch_sent(mqtt_tcp_watch_t *watch, size_t row, uint32_t connection, int result,
                             bool stored);

/* Wait until TCP has nothing unacknowledged, or the connection is gone, or the time is up, or the run
 * aborted. */
void mqtt_tcp_watch_drain(mqtt_tcp_watch_t *watch, const bench_run_t *run, int64_t deadline_us);

/* What is known of a row's message, by the counters alone: a value of the column. Ask for the rows of a burst
 * in their order. */
int mqtt_tcp_watch_code(mqtt_tcp_watch_t *watch, size_t row);

/* Add to the end line what TCP said last: tcp_retransmits, tcp_rto_us, tcp_srtt_us, tcp_cwnd_bytes,
 * tcp_unsent_bytes, tcp_unacked_bytes, each -1 where it is not known; on a chip lwip_tcp_… besides. */
void mqtt_tcp_watch_environment(mqtt_tcp_watch_t *watch, bench_samples_t *samples);

#ifdef __cplusplus
}
#endif
