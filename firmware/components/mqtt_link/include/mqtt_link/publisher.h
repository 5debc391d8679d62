/* SPDX-License-Identifier: Apache-2.0 */
/* A bench that publishes to a plan: a producer task puts rows into a ring under a mutex, a publisher task
 * takes them out, makes messages of them and publishes.
 *
 * The producer's plan is open loop: it is fixed before the clock starts, latency counts from the planned
 * time, and a row that finds the ring full, or waits there beyond its time-out, is an overrun, not a gap.
 */
#pragma once

#include "agent/bench.h"
#include "load/pipeline.h"
#include "mqtt_link/flight.h"
#include "mqtt_link/link.h"
#include "mqtt_link/tcp_watch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where each value goes; MQTT_NO_COLUMN where the bench has none for it. Times are since t0. */
typedef struct {
    size_t planned_us;
    size_t sent_us; /* right before the publish call */
    size_t done_us; /* 0 if it never was */
    size_t outcome; /* MQTT_OUTCOME_… */
    size_t mutex_wait_us, serialise_us, publish_call_us;
    size_t connection;    /* number of the connection at hand-over, from 1; 0 none */
    size_t tcp;           /* MQTT_TCP_… */
    size_t copies, order; /* how many echoes came; the place of the first, from 1 */
} mqtt_publisher_columns_t;

typedef struct {
    /* Set these after mqtt_publisher_create(), before mqtt_publisher_run(). */
    const mqtt_publisher_columns_t *columns;
    const char *leaf, *echo_leaf; /* of the topics; echo_leaf NULL: nothing is subscribed to */
    bool enqueue;                 /* store only, the mqtt task sends */
    int retain;
    size_t message_bytes;
    load_message_writer_t write; /* with `number_of` of the flight */
    mqtt_link_settings_t settings;
    bool watches_tcp;

    /* Read from the run's parameters, and filled in. */
    const bench_run_t *run;
    bench_samples_t *samples;
    int qos;
    size_t capacity;
    load_pipeline_t load;
    mqtt_link_t link;
    mqtt_flight_t flight;
    mqtt_tcp_watch_t watch;
    char topic[MQTT_LINK_TOPIC_SIZE], echo_topic[MQTT_LINK_TOPIC_SIZE];
    char *message;
    int outbox_max_bytes;
} mqtt_publisher_t;

/* Reads the parameters transport, qos, nodelay, timeout_ms, schedule, interval_us and seed; NULL where there
 * is no memory. Messages are JSON, done by their acknowledgement, over a link with mqtt_link_defaults. */
mqtt_publisher_t *mqtt_publisher_create(const bench_run_t *run, bench_samples_t *samples);

/* Choices of the parameter `api`. */
extern const char *const mqtt_publisher_apis[];

/* Read the parameters api, retain, payload_bytes, hold_us, producer_core and publisher_core. */
void mqtt_publisher_read_load(mqtt_publisher_t *publisher);

/* Read the parameters outbox_limit_bytes, network_timeout_ms, reconnect_ms, clean_session and inflight. */
void mqtt_publisher_read_settings(mqtt_publisher_t *publisher);

/* Publish the parameters' count + warmup messages, in bursts. Returns a bench's status. */
esp_err_t mqtt_publisher_run(mqtt_publisher_t *publisher);

void mqtt_publisher_delete(mqtt_publisher_t *publisher);

/* All of that for a bench: create one, let `set_up` set what is to be set, run and delete it. */
esp_err_t mqtt_publisher_bench(const bench_run_t *run, bench_samples_t *samples,
                               void (*set_up)(mqtt_publisher_t *publisher));

#ifdef __cplusplus
}
#endif
