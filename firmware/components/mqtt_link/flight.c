#include "mqtt_link/flight.h"

#include <stdlib.h>

#include "esp_timer.h"
#include "freertos/FreeRTOS.h"
#include "freertos/task.h"
#include "load/message.h"

enum {
    OUTCOME_PENDING = MQTT_OUTCOME_OVERRUN + 1,
    LATE_ACKS = 64, /* room for answers to messages given up */
    JOIN_MS = 10,
};

esp_err_t mqtt_flight_create(mqtt_flight_t *flight, size_t capacity) {
    flight->ack_capacity = capacity + LATE_ACKS;
    flight->echo_row = LOAD_NO_ROW;
    flight->messages = calloc(capacity, sizeof(*flight->messages));
    flight->acks = calloc(flight->ack_capacity, sizeof(*flight->acks));
    return flight->messages != NULL && flight->acks != NULL ? ESP_OK : ESP_ERR_NO_MEM;
}

void mqtt_flight_delete(mqtt_flight_t *flight) {
    free(flight->messages);
    free(flight->acks);
    flight->messages = NULL;
    flight->acks = NULL;
}

void mqtt_flight_begin(mqtt_flight_t *flight, size_t rows) {
    flight->row_count = rows;
    flight->burst++;
    flight->sent_count = 0;
    flight->joined = atomic_load(&flight->ack_count); /* what is still coming from the last burst is late */
    for (size_t row = 0; row < flight->row_count; row++) {
        flight->messages[row] = (mqtt_message_t){.outcome = OUTCOME_PENDING};
    }
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

/* Our row, or LOAD_NO_ROW: a retained message, one of another burst, or not ours at all. */
static uint32_t row_of_echo(const mqtt_flight_t *flight, const esp_mqtt_event_t *event) {
    if (event->retain || event->data == NULL) {
        return LOAD_NO_ROW;
    }
    return load_message_row(event->data, (size_t)event->data_len, flight->burst);
}

static void on_data(mqtt_flight_t *flight, const esp_mqtt_event_t *event) {
    if (event->current_data_offset == 0) {
        flight->echo_row = row_of_echo(flight, event);
    }
    bool complete = event->current_data_offset + event->data_len == event->total_data_len;
    if (complete && flight->echo_row != LOAD_NO_ROW) {
        log_ack(flight, flight->echo_row);
    }
}

void mqtt_flight_on_event(void *argument, const esp_mqtt_event_t *event) {
    mqtt_flight_t *flight = argument;
    if (event->event_id == MQTT_EVENT_PUBLISHED && !flight->by_echo) {
        log_ack(flight, (uint32_t)event->msg_id);
    } else if (event->event_id == MQTT_EVENT_DATA && flight->by_echo) {
        on_data(flight, event);
    }
}

/* ---- in the task that publishes ---- */

void mqtt_flight_sent(mqtt_flight_t *flight, size_t row, int result, uint32_t sent_us) {
    if (result < 0) {
        flight->messages[row].outcome = result == -2 ? MQTT_OUTCOME_OUTBOX_FULL : MQTT_OUTCOME_REFUSED;
        return;
    }
    flight->messages[row].id = (uint16_t)result;
    flight->first_sent_us = flight->sent_count == 0 ? sent_us : flight->first_sent_us;
    flight->last_sent_us = sent_us;
    flight->sent_count++;
}

void mqtt_flight_overrun(mqtt_flight_t *flight, size_t row) {
    flight->messages[row].outcome = MQTT_OUTCOME_OVERRUN;
}

/* ---- afterwards ---- */

/* Ids are handed out in the order of the rows, so the search starts behind the last hit. */
static size_t row_of_ack(const mqtt_flight_t *flight, uint32_t key, size_t hint) {
    const size_t rows = flight->row_count;
    if (flight->by_echo) {
        return key;
    }
    for (size_t i = 0; i < rows; i++) {
        size_t row = (hint + i) % rows;
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

static void join_acks(mqtt_flight_t *flight) {
    size_t hint = 0;
    for (; flight->joined != atomic_load(&flight->ack_count); flight->joined++) {
        mqtt_ack_t ack = flight->acks[flight->joined % flight->ack_capacity];
        size_t row = row_of_ack(flight, ack.key, hint);
        if (row < flight->row_count && flight->messages[row].outcome == OUTCOME_PENDING) {
            finish_row(flight, row, ack.time_us);
            hint = row + 1;
        }
    }
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
        uint8_t outcome = flight->messages[row].outcome;
        bench_samples_set(flight->samples, row, flight->outcome_column,
                          outcome == OUTCOME_PENDING ? MQTT_OUTCOME_TIMEOUT : outcome);
    }
}

uint32_t mqtt_flight_interval_us(const mqtt_flight_t *flight) {
    uint32_t span_us = flight->last_sent_us - flight->first_sent_us;
    return flight->sent_count > 1 ? span_us / (flight->sent_count - 1) : 0;
}
