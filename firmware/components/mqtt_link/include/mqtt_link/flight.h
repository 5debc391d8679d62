/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of a burst: which are done when, and what became of each.
 *
 * Acknowledgements and echoes are logged with their time by the mqtt task and joined to the rows later,
 * because one may come before the publish call returns its message id. That needs ids that do not repeat
 * (CONFIG_MQTT_MSG_ID_INCREMENTAL).
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "agent/bench.h"
#include "freertos/FreeRTOS.h"
#include "freertos/semphr.h"
#include "load/message.h"
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

/* When a message is done. */
typedef enum {
    MQTT_DONE_BY_ACK,  /* the PUBLISHED event: PUBACK, PUBCOMP */
    MQTT_DONE_BY_ECHO, /* its echo is there, to the last byte */
    MQTT_DONE_BY_CALL, /* the publish call has returned */
} mqtt_done_t;

#define MQTT_NO_COLUMN SIZE_MAX /* a column that the bench has not */

typedef struct {
    uint32_t key; /* message id; by echo the message's number */
    uint32_t time_us;
} mqtt_ack_t;

typedef struct {
    uint16_t id;
    uint8_t outcome;
    uint8_t copies; /* echoes that came, 255 at most */
} mqtt_message_t;

typedef struct {
    /* Set these before mqtt_flight_create(). */
    const bench_run_t *run;
    bench_samples_t *samples;
    const load_plan_t *plan;
    uint32_t timeout_us; /* after the plan; what comes later is a timeout */
    mqtt_done_t done_by;
    load_message_reader_t number_of; /* by echo */
    uint32_t message_run;            /* of its messages */
    uint32_t inflight;               /* messages unacknowledged at most, QoS 1 and 2; 0: any */
    size_t done_column, outcome_column;
    size_t copies_column, order_column; /* by echo: how many came; in which place the first did, from 1 */

    size_t row_count;      /* of this burst */
    uint32_t first_number; /* of this burst's first row */
    mqtt_message_t *messages;
    mqtt_ack_t *acks; /* a ring */
    size_t ack_capacity;
    atomic_uint ack_count; /* ever logged */
    atomic_uint joined;    /* ever looked at */
    size_t hint;           /* the row that the next acknowledgement probably is of */
    uint32_t echo_number;  /* of the message that is arriving in pieces */
    uint32_t echo_order;
    atomic_int unacknowledged;
    atomic_int given_up_id; /* up to this id messages count no longer as unacknowledged; 0: none */
    uint16_t last_id;
    SemaphoreHandle_t acknowledged;
    uint32_t first_sent_us, last_sent_us, sent_count;
} mqtt_flight_t;

/* Room for bursts of `capacity` rows. Returns ESP_ERR_NO_MEM. */
esp_err_t mqtt_flight_create(mqtt_flight_t *flight, size_t capacity);
void mqtt_flight_delete(mqtt_flight_t *flight);

/* Begin a burst of `rows` messages, none of them sent. Do it before the plan is run. */
void mqtt_flight_begin(mqtt_flight_t *flight, size_t rows);

/* An event of the connection; for mqtt_link_t.on_event, with the flight as its context. */
void mqtt_flight_on_event(void *flight, const esp_mqtt_event_t *event);

/* Number of a row's message. */
uint32_t mqtt_flight_number(const mqtt_flight_t *flight, size_t row);

/* Wait until fewer than `inflight` messages are unacknowledged. Those that were not within the time-out no
 * longer count. Returns false where the run is aborted. */
bool mqtt_flight_await_room(mqtt_flight_t *flight);

/* A message is about to be handed over: its acknowledgement may come before the publish call returns. */
void mqtt_flight_sending(mqtt_flight_t *flight);

/* It was handed over from `sent_us` to `returned_us` with this result of the publish call. One task at
 * a time. */
void mqtt_flight_sent(mqtt_flight_t *flight, size_t row, int result, uint32_t sent_us, uint32_t returned_us);

/* It never was handed over, because there was no room for its row. */
void mqtt_flight_overrun(mqtt_flight_t *flight, size_t row);

/* Wait until every message has its outcome, or has timed out, or the run is aborted; fill the columns. */
void mqtt_flight_land(mqtt_flight_t *flight);

/* Of a burst that has landed. */
int mqtt_flight_outcome(const mqtt_flight_t *flight, size_t row);

/* Mean interval between messages handed over in this burst. */
uint32_t mqtt_flight_interval_us(const mqtt_flight_t *flight);

#ifdef __cplusplus
}
#endif
