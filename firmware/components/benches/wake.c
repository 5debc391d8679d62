/* SPDX-License-Identifier: Apache-2.0 */
/* wake: from the end of a light sleep to the first message that the broker has acknowledged.
 *
 * Each row leaves the network, sleeps, and is woken by the timer; then it joins, connects and publishes one
 * message at QoS 1. Memory stays as it was, so nothing of a boot is in it, and esp_timer goes on.
 *
 *   asleep_us    from asking for the sleep to its end, by esp_timer, which the chip's slow clock corrects
 *   join_us      from waking to an IPv4 address; nothing on a host, whose network is up
 *   connect_us   from then to the broker's CONNACK: client, TCP, TLS, CONNECT
 *   publish_us   from then to the PUBACK
 *   outcome      0 ok, 1 timeout
 *
 * Before each sleep the note `asleep` says how long it is (`ms`), for the current meter in the board's
 * supply.
 */
#include <stdio.h>
#include <stdlib.h>

#include "agent/bench.h"
#include "esp_sleep.h"
#include "esp_timer.h"
#include "freertos/FreeRTOS.h"
#include "freertos/event_groups.h"
#include "freertos/task.h"
#include "link.h"
#include "mqtt_link/link.h"

enum { COLUMN_ASLEEP, COLUMN_JOIN, COLUMN_CONNECT, COLUMN_PUBLISH, COLUMN_OUTCOME };
enum { OUTCOME_OK, OUTCOME_TIMEOUT };
enum {
    ACKNOWLEDGED_BIT = 1,
    CHECK_MS = 50,
    NOTE_MS = 20, /* until the note has left the UART, which stands still in the sleep */
};

typedef struct {
    const bench_run_t *run;
    bench_samples_t *samples;
    mqtt_link_t link;
    EventGroupHandle_t acknowledged;
    int64_t acknowledged_us; /* written by the mqtt task before the bit is set */
    uint32_t sleep_ms;
    uint32_t timeout_ms;
    char topic[MQTT_LINK_TOPIC_SIZE];
} wake_t;

/* In the mqtt task. */
static void on_event(void *context, const esp_mqtt_event_t *event) {
    wake_t *w = context;
    if (event->event_id == MQTT_EVENT_PUBLISHED) {
        w->acknowledged_us = esp_timer_get_time();
        xEventGroupSetBits(w->acknowledged, ACKNOWLEDGED_BIT);
    }
}

static esp_err_t leave(const wake_t *w) {
    esp_err_t err = link_off();
    if (err == ESP_ERR_NOT_SUPPORTED) {
        return bench_fail(w->samples, BENCH_OWNER_CONFIGURATION, err,
                          "the network cannot be left, it is the program's own");
    }
    if (err != ESP_OK) {
        return bench_fail(w->samples, BENCH_OWNER_FIRMWARE, err, "the network cannot be left: %s",
                          esp_err_to_name(err));
    }
    return ESP_OK;
}

/* Returns with the time of waking. */
static esp_err_t sleep_until_woken(const wake_t *w, size_t row, int64_t *woke_us) {
    bench_note(w->run, "asleep", "ms=%u", (unsigned)w->sleep_ms);
    fflush(stdout);
    vTaskDelay(pdMS_TO_TICKS(NOTE_MS));
    esp_err_t err = esp_sleep_enable_timer_wakeup((uint64_t)w->sleep_ms * 1000);
    int64_t asked_us = esp_timer_get_time();
    if (err == ESP_OK) {
        err = esp_light_sleep_start();
    }
    *woke_us = esp_timer_get_time();
    esp_sleep_wakeup_cause_t cause = esp_sleep_get_wakeup_cause();
    (void)esp_sleep_disable_wakeup_source(ESP_SLEEP_WAKEUP_TIMER);
    if (err != ESP_OK) {
        return bench_fail(w->samples, BENCH_OWNER_FIRMWARE, err, "the chip does not sleep: %s",
                          esp_err_to_name(err));
    }
    if (cause != ESP_SLEEP_WAKEUP_TIMER) {
        return bench_fail(w->samples, BENCH_OWNER_FIRMWARE, ESP_FAIL, "woken by source %d, not by the timer",
                          (int)cause);
    }
    bench_samples_set(w->samples, row, COLUMN_ASLEEP, (uint32_t)(*woke_us - asked_us));
    return ESP_OK;
}

/* The Wi-Fi's own errors say that the access point was not found or refused us (link.h). */
static bool is_the_rigs(esp_err_t err) {
    return err == ESP_ERR_TIMEOUT || (err >= ESP_ERR_WIFI_BASE && err < ESP_ERR_MESH_BASE);
}

/* In slices, because an abort must not wait for the network. The station tries again by itself, so what the
 * rig refuses may still turn into joined. */
static esp_err_t join(const wake_t *w) {
    esp_err_t err = ESP_ERR_TIMEOUT;
    for (uint32_t waited_ms = 0; waited_ms < w->timeout_ms && !bench_aborted(w->run); waited_ms += CHECK_MS) {
        err = link_up(bench_provision(w->run), pdMS_TO_TICKS(CHECK_MS));
        if (err == ESP_OK || !is_the_rigs(err)) {
            break;
        }
    }
    if (err == ESP_OK) {
        return ESP_OK;
    }
    return bench_fail(w->samples, is_the_rigs(err) ? BENCH_OWNER_RIG : BENCH_OWNER_FIRMWARE, err,
                      "the network did not come up after the sleep: %s", esp_err_to_name(err));
}

static bool await_acknowledgement(const wake_t *w) {
    EventBits_t bits = 0;
    for (uint32_t waited_ms = 0; waited_ms < w->timeout_ms && bits == 0 && !bench_aborted(w->run);
         waited_ms += CHECK_MS) {
        bits =
            xEventGroupWaitBits(w->acknowledged, ACKNOWLEDGED_BIT, pdFALSE, pdTRUE, pdMS_TO_TICKS(CHECK_MS));
    }
    return bits != 0;
}

static esp_err_t publish(wake_t *w, size_t row) {
    static const char message[] = "{\"awake\":1}";
    xEventGroupClearBits(w->acknowledged, ACKNOWLEDGED_BIT);
    int64_t asked_us = esp_timer_get_time();
    if (esp_mqtt_client_publish(w->link.client, w->topic, message, sizeof(message) - 1, 1, 0) < 0) {
        return bench_fail(w->samples, BENCH_OWNER_FIRMWARE, ESP_FAIL, "the MQTT client refused the message");
    }
    bool done = await_acknowledgement(w);
    bench_samples_set(w->samples, row, COLUMN_OUTCOME, done ? OUTCOME_OK : OUTCOME_TIMEOUT);
    bench_samples_set(w->samples, row, COLUMN_PUBLISH, done ? (uint32_t)(w->acknowledged_us - asked_us) : 0);
    return ESP_OK;
}

static esp_err_t connect_and_publish(wake_t *w, size_t row, int64_t joined_us) {
    esp_err_t err = mqtt_link_open(&w->link);
    if (err == ESP_OK) {
        bench_samples_set(w->samples, row, COLUMN_CONNECT, (uint32_t)(esp_timer_get_time() - joined_us));
        err = publish(w, row);
    }
    if (row == 0) {
        mqtt_link_environment(&w->link);
    }
    mqtt_link_close(&w->link);
    return err;
}

static esp_err_t measure_row(wake_t *w, size_t row) {
    int64_t woke_us = 0;
    esp_err_t err = leave(w);
    if (err == ESP_OK) {
        err = sleep_until_woken(w, row, &woke_us);
    }
    if (err == ESP_OK) {
        err = join(w);
    }
    if (err != ESP_OK) {
        return err;
    }
    int64_t joined_us = esp_timer_get_time();
    bench_samples_set(w->samples, row, COLUMN_JOIN, (uint32_t)(joined_us - woke_us));
    return connect_and_publish(w, row, joined_us);
}

static esp_err_t measure(wake_t *w) {
    size_t cycles = (size_t)bench_param_int(w->run, "cycles");
    esp_err_t err = bench_samples_begin(w->samples, cycles, 0);
    for (size_t row = 0; row < cycles && err == ESP_OK; row++) {
        err = bench_aborted(w->run) ? ESP_ERR_INVALID_STATE : measure_row(w, row);
    }
    return err;
}

static esp_err_t run(const bench_run_t *bench_run, bench_samples_t *samples) {
    wake_t *w = calloc(1, sizeof(*w));
    EventGroupHandle_t acknowledged = xEventGroupCreate();
    if (w == NULL || acknowledged == NULL) {
        free(w);
        if (acknowledged != NULL) {
            vEventGroupDelete(acknowledged);
        }
        return ESP_ERR_NO_MEM;
    }
    *w = (wake_t){.run = bench_run, .samples = samples, .acknowledged = acknowledged};
    w->sleep_ms = (uint32_t)bench_param_int(bench_run, "sleep_ms");
    w->timeout_ms = (uint32_t)bench_param_int(bench_run, "timeout_ms");
    w->link = (mqtt_link_t){
        .run = bench_run,
        .samples = samples,
        .transport = (mqtt_link_transport_t)bench_param_int(bench_run, "transport"),
        .nodelay = true,
        .on_event = on_event,
        .context = w,
    };
    mqtt_link_topic(w->topic, "wake");
    esp_err_t err = measure(w);
    vEventGroupDelete(acknowledged);
    free(w);
    return err;
}

static const bench_parameter_t PARAMETERS[] = {
    {.key = "transport", .type = BENCH_CHOICE, .choices = mqtt_link_transports},
    {.key = "sleep_ms", .type = BENCH_INT, .def = 1000, .min = 10, .max = 10000},
    {.key = "cycles", .type = BENCH_INT, .def = 10, .min = 1, .max = 1000},
    {.key = "timeout_ms", .type = BENCH_INT, .def = 30000, .min = 100, .max = 60000},
};

static const char *const COLUMNS[] = {"asleep_us", "join_us", "connect_us", "publish_us", "outcome"};

const bench_t bench_wake = {
    .name = "wake",
    .parameters = PARAMETERS,
    .parameter_count = sizeof(PARAMETERS) / sizeof(PARAMETERS[0]),
    .columns = COLUMNS,
    .column_count = sizeof(COLUMNS) / sizeof(COLUMNS[0]),
    .run = run,
};
