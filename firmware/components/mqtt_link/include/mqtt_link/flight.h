/* The messages of a burst: which are acknowledged when, and what became of each.
 *
 * Acknowledgements are logged with their time by the mqtt task and joined to the rows afterwards, because
 * one may come before the publish call returns its message id. That needs ids that do not repeat
 * (CONFIG_MQTT_MSG_ID_INCREMENTAL).
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "agent/bench.h"
#include "load/plan.h"
#include "mqtt_client.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Values of a column `outcome`. */
enum {
    MQTT_OUTCOME_OK,
    MQTT_OUTCOME_TIMEOUT,
    MQTT_OUTCOME_REFUSED,
    MQTT_OUTCOME_OUTBOX_FULL,
    MQTT_OUTCOME_OVERRUN,
};

typedef struct {
    uint32_t key; /* message id; with by_echo the row */
    uint32_t time_us;
} mqtt_ack_t;

typedef struct {
    uint16_t id;
    uint8_t outcome;
} mqtt_message_t;

typedef struct {
    /* Set these before mqtt_flight_create(). */
    const bench_run_t *run;
    bench_samples_t *samples;
    const load_plan_t *plan;
    uint32_t timeout_us; /* after the plan; what comes later is a timeout */
    bool by_echo;        /* done is the board's own message coming back, not the PUBLISHED event */
    size_t done_column;
    size_t outcome_column;

    size_t row_count; /* of this burst */
    mqtt_message_t *messages;
    mqtt_ack_t *acks; /* a ring */
    size_t ack_capacity;
    atomic_uint ack_count; /* ever logged */
    atomic_uint joined;    /* ever looked at */
    atomic_uint burst;     /* echoes of another burst are not ours */
    uint32_t echo_row;     /* of the message that is arriving in pieces */
    uint32_t first_sent_us, last_sent_us, sent_count;
} mqtt_flight_t;

/* Room for bursts of `capacity` rows. Returns ESP_ERR_NO_MEM. */
esp_err_t mqtt_flight_create(mqtt_flight_t *flight, size_t capacity);
void mqtt_flight_delete(mqtt_flight_t *flight);

/* Begin a burst of `rows` messages, none of them sent. Do it before the plan is run. */
void mqtt_flight_begin(mqtt_flight_t *flight, size_t rows);

/* An event of the connection; for mqtt_link_t.on_event, with the flight as its context. */
void mqtt_flight_on_event(void *flight, const esp_mqtt_event_t *event);

/* A message was handed over at `sent_us` with this result of the publish call. One task at a time. */
void mqtt_flight_sent(mqtt_flight_t *flight, size_t row, int result, uint32_t sent_us);

/* It never was handed over, because there was no room for its row. */
void mqtt_flight_overrun(mqtt_flight_t *flight, size_t row);

/* Wait until every message has its outcome, or has timed out, or the run is aborted; fill the columns done
 * and outcome. */
void mqtt_flight_land(mqtt_flight_t *flight);

/* Mean interval between messages handed over in this burst. */
uint32_t mqtt_flight_interval_us(const mqtt_flight_t *flight);

#ifdef __cplusplus
}
#endif
