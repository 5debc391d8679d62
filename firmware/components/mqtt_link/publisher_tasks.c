/* SPDX-License-Identifier: Apache-2.0 */
/* The publisher at work: its task, the connection's events, a burst. */
#include "publisher_private.h"

static void set(const mqtt_publisher_t *p, size_t row, size_t column, uint32_t value) {
    if (column != MQTT_NO_COLUMN) {
        bench_samples_set(p->samples, row, column, value);
    }
}

/* ---- the publisher's task ---- */

static int hand_over(const mqtt_publisher_t *p) {
    int length = (int)p->message_bytes;
    if (p->enqueue) {
        return esp_mqtt_client_enqueue(p->link.client, p->topic, p->message, length, p->qos, p->retain, true);
    }
    return esp_mqtt_client_publish(p->link.client, p->topic, p->message, length, p->qos, p->retain);
}

static void note_outbox(mqtt_publisher_t *p) {
    int outbox_bytes = esp_mqtt_client_get_outbox_size(p->link.client);
    p->outbox_max_bytes = outbox_bytes > p->outbox_max_bytes ? outbox_bytes : p->outbox_max_bytes;
}

static void publish(mqtt_publisher_t *p, size_t row) {
    const mqtt_publisher_columns_t *columns = p->columns;
    const load_plan_t *plan = &p->load.plan;
    uint32_t connection = p->watches_tcp ? mqtt_tcp_watch_connection(&p->watch) : 0;
    mqtt_flight_sending(&p->flight);
    uint32_t sent_us = load_now_us(plan);
    int result = hand_over(p);
    uint32_t returned_us = load_now_us(plan);
    set(p, row, columns->sent_us, sent_us);
    set(p, row, columns->publish_call_us, returned_us - sent_us);
    if (p->watches_tcp) {
        connection = mqtt_tcp_watch_sent(&p->watch, row, connection, result, p->enqueue);
        set(p, row, columns->connection, connection);
    }
    mqtt_flight_sent(&p->flight, row, result, sent_us, returned_us);
    note_outbox(p);
}

/* Publishes the oldest row of the ring, if there is one. A row whose time-out has passed there is not handed
 * over any more: where each call takes longer than the interval, a case would last as long as all of them. */
bool mqtt_publisher_publish_next(void *context) {
    mqtt_publisher_t *p = context;
    const load_plan_t *plan = &p->load.plan;
    size_t row = 0;
    if (!mqtt_flight_await_room(&p->flight)) {
        return false;
    }
    uint32_t asked_us = load_now_us(plan);
    xSemaphoreTake(p->load.ring.mutex, portMAX_DELAY);
    uint32_t locked_us = load_now_us(plan);
    if (!load_ring_pop(&p->load.ring, &row)) {
        xSemaphoreGive(p->load.ring.mutex);
        return false;
    }
    int32_t waited_us = (int32_t)(locked_us - plan->planned_us[row]); /* a tick's edge is known to a few us */
    if (waited_us > (int32_t)p->flight.timeout_us) {
        xSemaphoreGive(p->load.ring.mutex);
        mqtt_flight_overrun(&p->flight, row);
        return true;
    }
    p->write(p->message, p->message_bytes, mqtt_flight_number(&p->flight, row), p->flight.message_run,
             plan->planned_us[row]);
    uint32_t serialised_us = load_now_us(plan);
    xSemaphoreGive(p->load.ring.mutex);
    set(p, row, p->columns->mutex_wait_us, locked_us - asked_us);
    set(p, row, p->columns->serialise_us, serialised_us - locked_us);
    publish(p, row);
    return true;
}

/* In the producer's task. */
void mqtt_publisher_overrun(void *context, size_t row) {
    mqtt_publisher_t *p = context;
    mqtt_flight_overrun(&p->flight, row);
}

/* ---- the mqtt task ---- */

void mqtt_publisher_on_event(void *context, const esp_mqtt_event_t *event) {
    mqtt_publisher_t *p = context;
    mqtt_flight_on_event(&p->flight, event); /* first, so that its times are the events' */
    if (p->watches_tcp) {
        mqtt_tcp_watch_on_event(&p->watch, event);
    }
}

/* ---- a burst ---- */

static void report(mqtt_publisher_t *p) {
    bench_environment_int(p->samples, "t0_us", p->load.plan.t0_us);
    bench_environment_int(p->samples, "outbox_max_bytes", p->outbox_max_bytes);
    bench_environment_int(p->samples, "achieved_interval_us", mqtt_flight_interval_us(&p->flight));
    bench_environment_stack(p->samples, p->load.consumer_name, p->load.consumer_stack_free_min_bytes);
    if (p->watches_tcp) {
        bench_environment_int(p->samples, "message_run", p->flight.message_run);
        mqtt_tcp_watch_environment(&p->watch, p->samples);
    }
    mqtt_link_environment(&p->link);
}

/* The broker's acknowledgement proves that a message was transmitted, whichever connection took it. */
static uint32_t tcp_code(mqtt_publisher_t *p, size_t row) {
    int code = mqtt_tcp_watch_code(&p->watch, row);
    bool acknowledged = p->qos > 0 && mqtt_flight_outcome(&p->flight, row) == MQTT_OUTCOME_OK;
    return (uint32_t)(acknowledged ? MQTT_TCP_ACKNOWLEDGED : code);
}

static void land(mqtt_publisher_t *p, size_t rows) {
    const load_plan_t *plan = &p->load.plan;
    mqtt_flight_land(&p->flight);
    if (!p->watches_tcp) {
        return;
    }
    mqtt_tcp_watch_drain(&p->watch, p->run, plan->t0_us + plan->planned_us[rows - 1] + p->flight.timeout_us);
    for (size_t row = 0; row < rows; row++) {
        set(p, row, p->columns->tcp, tcp_code(p, row));
    }
}

esp_err_t mqtt_publisher_measure(void *context, size_t rows, size_t warmup_rows) {
    mqtt_publisher_t *p = context;
    esp_err_t err = bench_samples_begin(p->samples, rows, warmup_rows);
    if (err != ESP_OK) {
        return err;
    }
    mqtt_flight_begin(&p->flight, rows);
    if (p->watches_tcp) {
        mqtt_tcp_watch_begin(&p->watch, rows);
    }
    err = load_pipeline_run(&p->load, rows);
    if (err != ESP_OK) {
        return err;
    }
    land(p, rows);
    if (load_plan_outlived(&p->load.plan)) {
        return bench_fail(p->samples, BENCH_OWNER_CONFIGURATION, ESP_ERR_INVALID_SIZE,
                          "the run took longer than 32-bit microseconds hold; give it fewer rows");
    }
    for (size_t row = 0; row < rows; row++) {
        set(p, row, p->columns->planned_us, p->load.plan.planned_us[row]);
    }
    report(p);
    return bench_aborted(p->run) ? ESP_ERR_INVALID_STATE : ESP_OK;
}
