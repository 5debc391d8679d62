/* SPDX-License-Identifier: Apache-2.0 */
#include "mqtt_link/tcp_watch.h"

#include <stdlib.h>
#include <string.h>

#include "esp_timer.h"

enum {
    SAMPLE_MS = 50,
    DRAIN_MS = 10,
    TASK_PRIORITY = 5,
    TASK_STACK_BYTES = 3072,
};

/* ---- sampling; the mutex is held ---- */

static mqtt_tcp_connection_t *remembered(mqtt_tcp_watch_t *watch, uint32_t number) {
    mqtt_tcp_connection_t *connection = &watch->known[number % MQTT_TCP_WATCH_CONNECTIONS];
    return number != 0 && connection->number == number ? connection : NULL;
}

/* Positions of the stream are compared modulo 2^32. */
static bool reaches(uint32_t position, uint32_t end) {
    return (int32_t)(position - end) >= 0;
}

static void sample(mqtt_tcp_watch_t *watch) {
    mqtt_tcp_connection_t *connection = remembered(watch, watch->connections);
    link_tcp_counters_t now;
    if (watch->socket_fd < 0 || connection == NULL || link_tcp_counters(watch->socket_fd, &now) != ESP_OK) {
        return;
    }
    watch->last = now;
    watch->sampled = true;
    connection->written = now.written;
    connection->transmitted = now.written - now.unsent_bytes;
    connection->acked = now.written - now.unacked_bytes;
    connection->ended = now.ended;
}

static void begin_connection(mqtt_tcp_watch_t *watch) {
    uint32_t number = ++watch->connections;
    mqtt_tcp_connection_t *connection = &watch->known[number % MQTT_TCP_WATCH_CONNECTIONS];
    link_tcp_counters_t now;
    memset(connection, 0, sizeof(*connection));
    watch->socket_fd = mqtt_link_socket(watch->link);
    if (link_tcp_counters(watch->socket_fd, &now) == ESP_OK) {
        connection->number = number; /* of one that has no first sample nothing is known */
        connection->start = now.written;
        sample(watch);
    }
}

/* ---- from several tasks ---- */

static void lock(mqtt_tcp_watch_t *watch) {
    xSemaphoreTake(watch->mutex, portMAX_DELAY);
}

static void unlock(mqtt_tcp_watch_t *watch) {
    xSemaphoreGive(watch->mutex);
}

void mqtt_tcp_watch_on_event(mqtt_tcp_watch_t *watch, const esp_mqtt_event_t *event) {
    lock(watch);
    if (event->event_id == MQTT_EVENT_CONNECTED) {
        begin_connection(watch);
    } else if (event->event_id == MQTT_EVENT_ERROR) {
        sample(watch);
    } else if (event->event_id == MQTT_EVENT_DISCONNECTED) {
        watch->socket_fd = -1;
    }
    unlock(watch);
}

uint32_t mqtt_tcp_watch_connection(mqtt_tcp_watch_t *watch) {
    lock(watch);
    uint32_t number = watch->socket_fd >= 0 ? watch->connections : 0;
    unlock(watch);
    return number;
}

/* What a call stored while there was no connection, or that failed to write what it had stored, the mqtt task
 * may write later. */
uint32_t mqtt_tcp_watch_sent(mqtt_tcp_watch_t *watch, size_t row, uint32_t connection, int result,
                             bool stored) {
    mqtt_tcp_message_t *message = &watch->messages[row];
    lock(watch);
    sample(watch);
    mqtt_tcp_connection_t *its = remembered(watch, connection);
    bool one = connection != 0 && watch->socket_fd >= 0 && watch->connections == connection;
    bool written = one && its != NULL && result >= 0 && !stored;
    *message = (mqtt_tcp_message_t){
        .connection = written ? (uint16_t)connection : 0,
        .end = written ? its->written : 0,
        .later = !written && (result >= 0 || (result == -1 && watch->resends)),
    };
    unlock(watch);
    return one ? connection : 0;
}

static void run_sampler(void *argument) {
    mqtt_tcp_watch_t *watch = argument;
    while (xSemaphoreTake(watch->stop, pdMS_TO_TICKS(SAMPLE_MS)) != pdTRUE) {
        lock(watch);
        sample(watch);
        unlock(watch);
    }
    xSemaphoreGive(watch->stopped);
    vTaskDelete(NULL);
}

/* ---- set-up ---- */

esp_err_t mqtt_tcp_watch_create(mqtt_tcp_watch_t *watch, size_t capacity) {
    watch->socket_fd = -1;
    watch->messages = calloc(capacity, sizeof(*watch->messages));
    watch->mutex = xSemaphoreCreateMutex();
    watch->stop = xSemaphoreCreateBinary();
    SemaphoreHandle_t stopped = xSemaphoreCreateBinary();
    bool complete = watch->messages != NULL && watch->mutex != NULL && watch->stop != NULL && stopped != NULL;
    if (complete &&
        xTaskCreate(run_sampler, "tcp_watch", TASK_STACK_BYTES, watch, TASK_PRIORITY, NULL) == pdTRUE) {
        watch->stopped = stopped;
        return ESP_OK;
    }
    if (stopped != NULL) {
        vSemaphoreDelete(stopped);
    }
    return ESP_ERR_NO_MEM;
}

static void stop_sampler(mqtt_tcp_watch_t *watch) {
    xSemaphoreGive(watch->stop);
    xSemaphoreTake(watch->stopped, portMAX_DELAY);
}

void mqtt_tcp_watch_delete(mqtt_tcp_watch_t *watch) {
    SemaphoreHandle_t *const semaphores[] = {&watch->mutex, &watch->stop, &watch->stopped};
    if (watch->stopped != NULL) {
        stop_sampler(watch);
    }
    for (size_t i = 0; i < sizeof(semaphores) / sizeof(semaphores[0]); i++) {
        if (*semaphores[i] != NULL) {
            vSemaphoreDelete(*semaphores[i]);
            *semaphores[i] = NULL;
        }
    }
    free(watch->messages);
    watch->messages = NULL;
}

void mqtt_tcp_watch_begin(mqtt_tcp_watch_t *watch, size_t rows) {
    memset(watch->messages, 0, rows * sizeof(*watch->messages));
    watch->floor_connection = 0;
}

/* ---- afterwards ---- */

void mqtt_tcp_watch_drain(mqtt_tcp_watch_t *watch, const bench_run_t *run, int64_t deadline_us) {
    bool drained = false;
    while (!drained && esp_timer_get_time() < deadline_us && !bench_aborted(run)) {
        lock(watch);
        sample(watch);
        const mqtt_tcp_connection_t *now = remembered(watch, watch->connections);
        drained = watch->socket_fd < 0 || now == NULL || now->ended || now->acked == now->written;
        unlock(watch);
        if (!drained) {
            vTaskDelay(pdMS_TO_TICKS(DRAIN_MS));
        }
    }
}

/* That a message was never transmitted takes a connection that has ended, whose counters therefore are final:
 * TCP goes on by itself where the client has merely closed its socket. And it takes a lower bound of the
 * message's end, as its upper bound `end` may hold bytes that the mqtt task wrote behind it: what was written
 * before, `floor`, and the message's own bytes. */
static int judge(const mqtt_tcp_watch_t *watch, const mqtt_tcp_connection_t *connection, uint32_t end,
                 uint32_t floor) {
    if (reaches(connection->acked, end)) {
        return MQTT_TCP_ACKNOWLEDGED;
    }
    if (reaches(connection->transmitted, end)) {
        return MQTT_TCP_TRANSMITTED;
    }
    bool sent_again = watch->resends && watch->connections != connection->number;
    bool cut_off = !reaches(connection->transmitted, floor + (uint32_t)watch->message_bytes);
    return connection->ended && cut_off && !sent_again ? MQTT_TCP_NEVER_TRANSMITTED : MQTT_TCP_UNKNOWN;
}

/* The run's connection with this number modulo 2^16, none of which is older than 64. */
static mqtt_tcp_connection_t *find(mqtt_tcp_watch_t *watch, uint16_t number) {
    uint16_t age = (uint16_t)((uint16_t)watch->connections - number);
    return number == 0 ? NULL : remembered(watch, watch->connections - age);
}

int mqtt_tcp_watch_code(mqtt_tcp_watch_t *watch, size_t row) {
    const mqtt_tcp_message_t *message = &watch->messages[row];
    int code = message->later || message->connection != 0 ? MQTT_TCP_UNKNOWN : MQTT_TCP_NOTHING;
    lock(watch);
    const mqtt_tcp_connection_t *connection = find(watch, message->connection);
    if (connection != NULL) {
        uint32_t floor = message->connection == watch->floor_connection ? watch->floor : connection->start;
        code = judge(watch, connection, message->end, floor);
        watch->floor = message->end;
        watch->floor_connection = message->connection;
    }
    unlock(watch);
    return code;
}

void mqtt_tcp_watch_environment(mqtt_tcp_watch_t *watch, bench_samples_t *samples) {
    lock(watch);
    link_tcp_counters_t last = watch->last;
    bool sampled = watch->sampled;
    unlock(watch);
    bench_environment_int(samples, "tcp_retransmits", sampled ? last.retransmits : -1);
    bench_environment_int(samples, "tcp_rto_us", sampled ? last.rto_us : -1);
    bench_environment_int(samples, "tcp_srtt_us", sampled ? last.srtt_us : -1);
    bench_environment_int(samples, "tcp_cwnd_bytes", sampled ? last.cwnd_bytes : -1);
    bench_environment_int(samples, "tcp_unsent_bytes", sampled ? (int64_t)last.unsent_bytes : -1);
    bench_environment_int(samples, "tcp_unacked_bytes", sampled ? (int64_t)last.unacked_bytes : -1);
    link_tcp_totals_t totals;
    if (link_tcp_totals(&totals) == ESP_OK) {
        bench_environment_int(samples, "lwip_tcp_xmit", totals.xmit);
        bench_environment_int(samples, "lwip_tcp_drop", totals.drop);
        bench_environment_int(samples, "lwip_tcp_memerr", totals.memerr);
        bench_environment_int(samples, "lwip_tcp_retrans", totals.retransmits);
    }
}
