/* SPDX-License-Identifier: Apache-2.0 */
#include "mqtt_link/flight.h"

#include <stdlib.h>

#include "esp_timer.h"
#include "freertos/FreeRTOS.h"
#include "freertos/task.h"

enum {
    OUTCOME_PENDING = MQTT_OUTCOME_OVERRUN + 1,
    LATE_ACKS = 64,       /* room for answers to messages given up */
    GIVEN_UP_IDS = 16384, /* after so many more ids none of those given up is acknowledged any more */
    JOIN_MS = 10,
    CHECK_MS = 100,
};

esp_err_t mqtt_flight_create(mqtt_flight_t *flight, size_t capacity) {
    flight->ack_capacity = capacity + LATE_ACKS;
    flight->echo_number = LOAD_NO_NUMBER;
    flight->messages = calloc(capacity, sizeof(*flight->messages));
    flight->acks = calloc(flight->ack_capacity, sizeof(*flight->acks));
    flight->acknowledged = xSemaphoreCreateBinary();
    bool complete = flight->messages != NULL && flight->acks != NULL && flight->acknowledged != NULL;
    return complete ? ESP_OK : ESP_ERR_NO_MEM;
}

void mqtt_flight_delete(mqtt_flight_t *flight) {
    free(flight->messages);
    free(flight->acks);
    if (flight->acknowledged != NULL) {
        vSemaphoreDelete(flight->acknowledged);
    }
    flight->messages = NULL;
    flight->acks = NULL;
    flight->acknowledged = NULL;
}

void mqtt_flight_begin(mqtt_flight_t *flight, size_t rows) {
    flight->first_number += (uint32_t)flight->row_count;
    flight->row_count = rows;
    flight->sent_count = 0;
    flight->hint = 0;
    flight->joined = atomic_load(&flight->ack_count); /* what is still coming from the last burst is late */
    for (size_t row = 0; row < flight->row_count; row++) {
        flight->messages[row] = (mqtt_message_t){.outcome = OUTCOME_PENDING};
    }
}

uint32_t mqtt_flight_number(const mqtt_flight_t *flight, size_t row) {
    return flight->first_number + (uint32_t)row;
}

/* ---- in the mqtt task ---- */

static void log_ack(mqtt_flight_t *flight, uint32_t key) {
    unsigned count = atomic_load(&flight->ack_count);
    if (count - atomic_load(&flight->joined) < flight->ack_capacity) {
        flight->acks[count % flight->ack_capacity] =
            (mqtt_ack_t){.key = key, .time_us = load_now_us(flight->plan)};
        atomic_store(&flight->ack_count, count + 1); /* the entry is complete before it counts */
    }
}

/* Of our message, or LOAD_NO_NUMBER: a retained message, one of another run, or not ours at all. */
static uint32_t number_of_echo(const mqtt_flight_t *flight, const esp_mqtt_event_t *event) {
    if (event->retain || event->data == NULL) {
        return LOAD_NO_NUMBER;
    }
    return flight->number_of(event->data, (size_t)event->data_len, flight->message_run);
}

static void on_data(mqtt_flight_t *flight, const esp_mqtt_event_t *event) {
    if (event->current_data_offset == 0) {
        flight->echo_number = number_of_echo(flight, event);
    }
    bool complete = event->current_data_offset + event->data_len == event->total_data_len;
    if (complete && flight->echo_number != LOAD_NO_NUMBER) {
        log_ack(flight, flight->echo_number);
    }
}

/* Not below zero: the id of one whose write failed is not known, so it may be acknowledged after it was given
 * up. */
static void count_one_less(mqtt_flight_t *flight) {
    int before = atomic_load(&flight->unacknowledged);
    while (before > 0 && !atomic_compare_exchange_weak(&flight->unacknowledged, &before, before - 1)) {
    }
}

/* Ids are handed out one after the other, modulo 2^16. */
static bool was_given_up(mqtt_flight_t *flight, int id) {
    int last_id = atomic_load(&flight->given_up_id);
    return last_id != 0 && (int16_t)(uint16_t)(id - last_id) <= 0;
}

static void on_published(mqtt_flight_t *flight, const esp_mqtt_event_t *event) {
    if (flight->done_by == MQTT_DONE_BY_ACK) {
        log_ack(flight, (uint32_t)event->msg_id);
    }
    if (!was_given_up(flight, event->msg_id)) {
        count_one_less(flight);
    }
    xSemaphoreGive(flight->acknowledged);
}

void mqtt_flight_on_event(void *argument, const esp_mqtt_event_t *event) {
    mqtt_flight_t *flight = argument;
    if (event->event_id == MQTT_EVENT_PUBLISHED) {
        on_published(flight, event);
    } else if (event->event_id == MQTT_EVENT_DATA && flight->done_by == MQTT_DONE_BY_ECHO) {
        on_data(flight, event);
    }
}

/* ---- joining, in one task at a time ---- */

/* The row, or one beyond the last where it is none of ours. Ids are handed out in the order of the rows, so
 * the search starts behind the last hit. */
static size_t row_of_ack(const mqtt_flight_t *flight, uint32_t key) {
    size_t rows = flight->row_count;
    if (flight->done_by == MQTT_DONE_BY_ECHO) {
        return key - flight->first_number;
    }
    for (size_t i = 0; i < rows; i++) {
        size_t row = (flight->hint + i) % rows;
        if (flight->messages[row].id == key && flight->messages[row].outcome == OUTCOME_PENDING) {
            return row;
        }
    }
    return rows;
}

static void finish_row(mqtt_flight_t *flight, size_t row, uint32_t time_us) {
    if (time_us - flight->plan->planned_us[row] > flight->timeout_us) {
        flight->messages[row].outcome = MQTT_OUTCOME_TIMEOUT; /* censored at the time-out, whenever it came */
        return;
    }
    flight->messages[row].outcome = MQTT_OUTCOME_OK;
    bench_samples_set(flight->samples, row, flight->done_column, time_us);
}

static void count_echo(mqtt_flight_t *flight, size_t row) {
    mqtt_message_t *message = &flight->messages[row];
    if (flight->done_by != MQTT_DONE_BY_ECHO || flight->copies_column == MQTT_NO_COLUMN) {
        return;
    }
    if (message->copies == 0) {
        bench_samples_set(flight->samples, row, flight->order_column, ++flight->echo_order);
    }
    if (message->copies < UINT8_MAX) {
        message->copies++;
    }
    bench_samples_set(flight->samples, row, flight->copies_column, message->copies);
}

static void join_acks(mqtt_flight_t *flight) {
    for (; flight->joined != atomic_load(&flight->ack_count); flight->joined++) {
        mqtt_ack_t ack = flight->acks[flight->joined % flight->ack_capacity];
        size_t row = row_of_ack(flight, ack.key);
        if (row >= flight->row_count) {
            continue;
        }
        count_echo(flight, row);
        if (flight->messages[row].outcome == OUTCOME_PENDING) {
            finish_row(flight, row, ack.time_us);
            flight->hint = row + 1;
        }
    }
}

bool mqtt_flight_await_room(mqtt_flight_t *flight) {
    uint32_t since_us = load_now_us(flight->plan);
    while (flight->inflight > 0 && atomic_load(&flight->unacknowledged) >= (int)flight->inflight) {
        if (bench_aborted(flight->run)) {
            return false;
        }
        if (load_now_us(flight->plan) - since_us > flight->timeout_us) {
            atomic_store(&flight->given_up_id, flight->last_id);
            atomic_store(&flight->unacknowledged, 0);
        }
        xSemaphoreTake(flight->acknowledged, pdMS_TO_TICKS(CHECK_MS));
    }
    return true;
}

void mqtt_flight_sending(mqtt_flight_t *flight) {
    atomic_fetch_add(&flight->unacknowledged, 1);
}

/* A QoS 1 or 2 message whose write failed has result -1 and waits in the outbox: it counts as unacknowledged,
 * though its id is not known. One that the outbox had no room for is nowhere. */
void mqtt_flight_sent(mqtt_flight_t *flight, size_t row, int result, uint32_t sent_us, uint32_t returned_us) {
    if (result == 0 || result == -2) {
        count_one_less(flight);
    }
    if (result < 0) {
        flight->messages[row].outcome = result == -2 ? MQTT_OUTCOME_OUTBOX_FULL : MQTT_OUTCOME_REFUSED;
        return;
    }
    flight->messages[row].id = (uint16_t)result;
    flight->last_id = (uint16_t)result;
    if ((uint16_t)(result - atomic_load(&flight->given_up_id)) > GIVEN_UP_IDS) {
        atomic_store(&flight->given_up_id, 0); /* before ids come round to it */
    }
    flight->first_sent_us = flight->sent_count == 0 ? sent_us : flight->first_sent_us;
    flight->last_sent_us = sent_us;
    flight->sent_count++;
    if (flight->done_by == MQTT_DONE_BY_CALL) {
        finish_row(flight, row, returned_us);
    } else if (flight->copies_column != MQTT_NO_COLUMN) {
        join_acks(flight); /* so that the log has room for every copy */
    }
}

void mqtt_flight_overrun(mqtt_flight_t *flight, size_t row) {
    flight->messages[row].outcome = MQTT_OUTCOME_OVERRUN;
}

static bool all_finished(const mqtt_flight_t *flight) {
    for (size_t row = 0; row < flight->row_count; row++) {
        if (flight->messages[row].outcome == OUTCOME_PENDING) {
            return false;
        }
    }
    return true;
}

void mqtt_flight_land(mqtt_flight_t *flight) {
    const load_plan_t *plan = flight->plan;
    int64_t deadline_us = plan->t0_us + plan->planned_us[flight->row_count - 1] + flight->timeout_us;
    for (join_acks(flight); !all_finished(flight); join_acks(flight)) {
        if (esp_timer_get_time() > deadline_us || bench_aborted(flight->run)) {
            break;
        }
        vTaskDelay(pdMS_TO_TICKS(JOIN_MS));
    }
    for (size_t row = 0; row < flight->row_count; row++) {
        mqtt_message_t *message = &flight->messages[row];
        message->outcome = message->outcome == OUTCOME_PENDING ? MQTT_OUTCOME_TIMEOUT : message->outcome;
        bench_samples_set(flight->samples, row, flight->outcome_column, message->outcome);
    }
}

int mqtt_flight_outcome(const mqtt_flight_t *flight, size_t row) {
    return flight->messages[row].outcome;
}

uint32_t mqtt_flight_interval_us(const mqtt_flight_t *flight) {
    uint32_t span_us = flight->last_sent_us - flight->first_sent_us;
    return flight->sent_count > 1 ? span_us / (flight->sent_count - 1) : 0;
}
