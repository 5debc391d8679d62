/* SPDX-License-Identifier: Apache-2.0 */
/* reconnect: how long a board is silent when the access point or the broker is away for a while, or when its
 * connection is ended and packets that a new one needs get lost for a while.
 *
 * The board publishes steadily at QoS 1 and asks the host to make the outage (note `outage`). What the
 * board sees of it, on its own clock, is one row:
 *
 *   gap_us         from the last message acknowledged before to the first one acknowledged after
 *   detected_us    from the last acknowledgement until the MQTT client noticed; 0 if it never did
 *   connected_us   from the last acknowledgement until it was connected again; 0 if it never was gone
 *   disconnects    in this row
 *   connects_failed, connect_failed_max_us
 *                  attempts to connect that the client gave up, and how long the longest of them took
 *   outcome        0 ok, 1 timeout
 *
 * How long the outage really was is the host's to say (outage_us). Two durations on two clocks differ by
 * parts per million, so gap - outage is how long recovery took, give or take one interval.
 */
#include <stdlib.h>

#include "agent/bench.h"
#include "esp_timer.h"
#include "freertos/FreeRTOS.h"
#include "freertos/task.h"
#include "mqtt_link/link.h"
#include "mqtt_link/outage.h"

enum {
    COLUMN_GAP,
    COLUMN_DETECTED,
    COLUMN_CONNECTED,
    COLUMN_DISCONNECTS,
    COLUMN_CONNECTS_FAILED,
    COLUMN_CONNECT_FAILED_MAX,
    COLUMN_OUTCOME
};
enum { OUTCOME_OK, OUTCOME_TIMEOUT };
enum {
    SETTLED_ACKS = 10,          /* acknowledged in a row before an outage is asked for */
    NOTE_INTERVAL_US = 1000000, /* a note may get lost on its way */
    OUTBOX_MAX_BYTES = 1024,    /* no more is published while this much waits */
    INTERVALS_PER_OUTAGE = 10,  /* an outage is at least this long, so that its gap cannot be missed */
};

typedef struct {
    const bench_run_t *run;
    bench_samples_t *samples;
    mqtt_link_t link;
    uint32_t outage_us, interval_us, timeout_us;
    TickType_t interval, wake;
    mqtt_link_settings_t settings;
    mqtt_outage_t outage;
    char topic[MQTT_LINK_TOPIC_SIZE];
} reconnect_t;

static const char MESSAGE[] = "{\"steady\":1}";

static uint32_t now_us(const reconnect_t *r) {
    return mqtt_outage_now_us(&r->outage);
}

/* One step of the steady stream. Without a connection the client is not asked for anything: its lock is held
 * as long as an attempt at one takes. What was missed is not made up for. */
static void publish_one(reconnect_t *r) {
    if (xTaskGetTickCount() - r->wake > r->interval) {
        r->wake = xTaskGetTickCount();
    }
    vTaskDelayUntil(&r->wake, r->interval);
    if (atomic_load(&r->outage.connected) &&
        esp_mqtt_client_get_outbox_size(r->link.client) <= OUTBOX_MAX_BYTES) {
        esp_mqtt_client_publish(r->link.client, r->topic, MESSAGE, sizeof(MESSAGE) - 1, 1, 0);
    }
}

static bool settle(reconnect_t *r) {
    uint32_t begun_us = now_us(r), acks = atomic_load(&r->outage.acks);
    while (atomic_load(&r->outage.acks) - acks < SETTLED_ACKS) {
        if (bench_aborted(r->run) || now_us(r) - begun_us > r->timeout_us) {
            return false;
        }
        publish_one(r);
    }
    return true;
}

static bool gap_has_begun(const reconnect_t *r) {
    return now_us(r) - atomic_load(&r->outage.last_ack_us) > r->outage_us / 2;
}

/* Ask for the outage and go on publishing until it is over. */
static bool sit_out(reconnect_t *r, size_t row) {
    uint32_t begun_us = now_us(r), noted_us = begun_us - NOTE_INTERVAL_US;
    mqtt_outage_arm(&r->outage);
    while (!atomic_load(&r->outage.over)) {
        uint32_t now = now_us(r);
        if (bench_aborted(r->run) || now - begun_us > r->timeout_us + r->outage_us) {
            atomic_store(&r->outage.armed, false);
            return false;
        }
        if (now - noted_us >= NOTE_INTERVAL_US && !gap_has_begun(r)) {
            bench_note(r->run, "outage", "cycle=%u", (unsigned)row);
            noted_us = now;
        }
        publish_one(r);
    }
    return true;
}

static void set_row(const reconnect_t *r, size_t row, bool recovered) {
    const mqtt_outage_t *outage = &r->outage;
    bench_samples_set(r->samples, row, COLUMN_OUTCOME, recovered ? OUTCOME_OK : OUTCOME_TIMEOUT);
    bench_samples_set(r->samples, row, COLUMN_GAP, recovered ? outage->end_us - outage->start_us : 0);
    bench_samples_set(r->samples, row, COLUMN_DETECTED, outage->detected_us);
    bench_samples_set(r->samples, row, COLUMN_CONNECTED, outage->connected_us);
    bench_samples_set(r->samples, row, COLUMN_DISCONNECTS, outage->disconnects);
    bench_samples_set(r->samples, row, COLUMN_CONNECTS_FAILED, outage->connects_failed);
    bench_samples_set(r->samples, row, COLUMN_CONNECT_FAILED_MAX, outage->connect_failed_max_us);
}

static esp_err_t measure(reconnect_t *r, size_t cycles) {
    esp_err_t err = bench_samples_begin(r->samples, cycles, 0);
    r->wake = xTaskGetTickCount();
    for (size_t row = 0; row < cycles && err == ESP_OK; row++) {
        if (!settle(r)) {
            err = bench_aborted(r->run)
                      ? ESP_ERR_INVALID_STATE
                      : bench_fail(r->samples, BENCH_OWNER_RIG, ESP_ERR_TIMEOUT,
                                   "before outage %u no steady stream of acknowledgements came "
                                   "from the broker",
                                   (unsigned)row + 1);
            break;
        }
        bool recovered = sit_out(r, row);
        set_row(r, row, recovered);
        err = bench_aborted(r->run) ? ESP_ERR_INVALID_STATE : ESP_OK;
    }
    return err;
}

static esp_err_t run_case(reconnect_t *r) {
    int64_t interval_ms = bench_param_int(r->run, "interval_ms"),
            outage_ms = bench_param_int(r->run, "outage_ms");
    if (outage_ms < INTERVALS_PER_OUTAGE * interval_ms) {
        return bench_fail(r->samples, BENCH_OWNER_CONFIGURATION, ESP_ERR_INVALID_ARG,
                          "an outage of %d ms is too short with a message every %d ms: make it %d ms",
                          (int)outage_ms, (int)interval_ms, (int)(INTERVALS_PER_OUTAGE * interval_ms));
    }
    if (interval_ms % portTICK_PERIOD_MS != 0) {
        return bench_fail(r->samples, BENCH_OWNER_CONFIGURATION, ESP_ERR_INVALID_ARG,
                          "interval_ms needs to be a whole number of ticks");
    }
    r->interval = pdMS_TO_TICKS(interval_ms);
    r->interval_us = (uint32_t)interval_ms * 1000;
    r->outage_us = (uint32_t)outage_ms * 1000;
    r->timeout_us = (uint32_t)bench_param_int(r->run, "timeout_ms") * 1000;
    r->outage.t0_us = esp_timer_get_time();
    r->outage.least_us = r->outage_us - r->interval_us;
    esp_err_t err = mqtt_link_open(&r->link);
    err = err == ESP_OK ? measure(r, (size_t)bench_param_int(r->run, "cycles")) : err;
    if (err == ESP_OK) {
        mqtt_link_environment(&r->link);
    }
    mqtt_link_close(&r->link);
    return err;
}

static esp_err_t run(const bench_run_t *bench_run, bench_samples_t *samples) {
    reconnect_t *r = calloc(1, sizeof(*r));
    if (r == NULL) {
        return ESP_ERR_NO_MEM;
    }
    r->run = bench_run;
    r->samples = samples;
    r->settings = mqtt_link_defaults;
    r->settings.network_timeout_ms = (int)bench_param_int(bench_run, "network_timeout_ms");
    r->settings.reconnect_ms = (int)bench_param_int(bench_run, "reconnect_ms");
    r->link = (mqtt_link_t){
        .run = bench_run,
        .samples = samples,
        .transport = (mqtt_link_transport_t)bench_param_int(bench_run, "transport"),
        .settings = &r->settings,
        .nodelay = true,
        .on_event = mqtt_outage_on_event,
        .context = &r->outage,
    };
    mqtt_link_topic(r->topic, "reconnect");
    esp_err_t err = run_case(r);
    free(r);
    return err;
}

/* The host reads it, not the board. */
static const char *const CAUSES[] = {"access_point", "broker", "syn", "connect", "connack", NULL};

static const bench_parameter_t PARAMETERS[] = {
    {.key = "cause", .type = BENCH_CHOICE, .choices = CAUSES},
    {.key = "transport", .type = BENCH_CHOICE, .choices = mqtt_link_transports},
    {.key = "cycles", .type = BENCH_INT, .def = 3, .min = 1, .max = 1000},
    {.key = "outage_ms", .type = BENCH_INT, .def = 1000, .min = 200, .max = 60000},
    {.key = "interval_ms", .type = BENCH_INT, .def = 50, .min = 5, .max = 1000},
    {.key = "timeout_ms", .type = BENCH_INT, .def = 30000, .min = 1000, .max = 120000},
    {.key = "network_timeout_ms", .type = BENCH_INT, .def = 10000, .min = 500, .max = 60000},
    {.key = "reconnect_ms", .type = BENCH_INT, .def = 1000, .min = 100, .max = 60000},
};

static const char *const COLUMNS[] = {"gap_us",      "detected_us",     "connected_us",
                                      "disconnects", "connects_failed", "connect_failed_max_us",
                                      "outcome"};

const bench_t bench_reconnect = {
    .name = "reconnect",
    .parameters = PARAMETERS,
    .parameter_count = sizeof(PARAMETERS) / sizeof(PARAMETERS[0]),
    .columns = COLUMNS,
    .column_count = sizeof(COLUMNS) / sizeof(COLUMNS[0]),
    .run = run,
};
