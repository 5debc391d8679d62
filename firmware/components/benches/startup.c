/* SPDX-License-Identifier: Apache-2.0 */
/* startup: from reset to the network, and to the first message that the broker has acknowledged.
 *
 * Each row leaves the network, joins it anew, connects and publishes one message at QoS 1. Joining again is
 * what a boot does after its first part, so one boot gives many rows; the first part is the boot's own.
 *
 *   boot_us      from the start of the application image to app_main; the same in every row of a boot
 *   join_us      from asking for the network to an IPv4 address; nothing on a host, whose network is up
 *   connect_us   from then to the broker's CONNACK: client, TCP, TLS, CONNECT
 *   publish_us   from then to the PUBACK
 *   outcome      0 ok, 1 timeout
 */
#include <stdlib.h>

#include "agent/agent.h"
#include "agent/bench.h"
#include "esp_timer.h"
#include "freertos/FreeRTOS.h"
#include "freertos/event_groups.h"
#include "freertos/task.h"
#include "link.h"
#include "mqtt_link/link.h"

enum { COLUMN_BOOT, COLUMN_JOIN, COLUMN_CONNECT, COLUMN_PUBLISH, COLUMN_OUTCOME };
enum { OUTCOME_OK, OUTCOME_TIMEOUT };
enum { ACKNOWLEDGED_BIT = 1, CHECK_MS = 50 };

typedef struct {
    const bench_run_t *run;
    bench_samples_t *samples;
    mqtt_link_t link;
    EventGroupHandle_t acknowledged;
    int64_t acknowledged_us; /* written by the mqtt task before the bit is set */
    uint32_t timeout_ms;
    char topic[MQTT_LINK_TOPIC_SIZE];
} startup_t;

/* In the mqtt task. */
static void on_event(void *context, const esp_mqtt_event_t *event) {
    startup_t *s = context;
    if (event->event_id == MQTT_EVENT_PUBLISHED) {
        s->acknowledged_us = esp_timer_get_time();
        xEventGroupSetBits(s->acknowledged, ACKNOWLEDGED_BIT);
    }
}

static bool await_acknowledgement(const startup_t *s) {
    EventBits_t bits = 0;
    for (uint32_t waited_ms = 0; waited_ms < s->timeout_ms && bits == 0 && !bench_aborted(s->run);
         waited_ms += CHECK_MS) {
        bits =
            xEventGroupWaitBits(s->acknowledged, ACKNOWLEDGED_BIT, pdFALSE, pdTRUE, pdMS_TO_TICKS(CHECK_MS));
    }
    return bits != 0;
}

/* The Wi-Fi's own errors say that the access point was not found or refused us (link.h). */
static bench_owner_t owner_of(esp_err_t err) {
    if (err == ESP_ERR_INVALID_ARG) { /* no SSID */
        return BENCH_OWNER_CONFIGURATION;
    }
    bool wifi = err >= ESP_ERR_WIFI_BASE && err < ESP_ERR_MESH_BASE;
    return err == ESP_ERR_TIMEOUT || wifi ? BENCH_OWNER_RIG : BENCH_OWNER_FIRMWARE;
}

/* In slices, because an abort must not wait for the network. The station tries again by itself, so what the
 * rig refuses may still turn into joined. */
static esp_err_t join(const startup_t *s) {
    esp_err_t err = ESP_ERR_TIMEOUT;
    for (uint32_t waited_ms = 0; waited_ms < s->timeout_ms && !bench_aborted(s->run); waited_ms += CHECK_MS) {
        err = link_up(bench_provision(s->run), pdMS_TO_TICKS(CHECK_MS));
        if (err == ESP_OK || owner_of(err) != BENCH_OWNER_RIG) {
            break;
        }
    }
    return err;
}

static esp_err_t publish_first(startup_t *s, size_t row) {
    static const char message[] = "{\"ready\":1}";
    xEventGroupClearBits(s->acknowledged, ACKNOWLEDGED_BIT);
    int64_t asked_us = esp_timer_get_time();
    if (esp_mqtt_client_publish(s->link.client, s->topic, message, sizeof(message) - 1, 1, 0) < 0) {
        return bench_fail(s->samples, BENCH_OWNER_FIRMWARE, ESP_FAIL,
                          "the MQTT client refused the first message");
    }
    bool done = await_acknowledgement(s);
    bench_samples_set(s->samples, row, COLUMN_OUTCOME, done ? OUTCOME_OK : OUTCOME_TIMEOUT);
    bench_samples_set(s->samples, row, COLUMN_PUBLISH, done ? (uint32_t)(s->acknowledged_us - asked_us) : 0);
    return ESP_OK;
}

static esp_err_t connect_and_publish(startup_t *s, size_t row) {
    int64_t joined_us = esp_timer_get_time();
    esp_err_t err = mqtt_link_open(&s->link);
    if (err == ESP_OK) {
        bench_samples_set(s->samples, row, COLUMN_CONNECT, (uint32_t)(esp_timer_get_time() - joined_us));
        err = publish_first(s, row);
    }
    if (row == 0) {
        mqtt_link_environment(&s->link);
    }
    mqtt_link_close(&s->link);
    return err;
}

static esp_err_t measure_row(startup_t *s, size_t row) {
    esp_err_t err = link_down();
    if (err != ESP_OK) {
        bool is_ours = err != ESP_ERR_NOT_SUPPORTED;
        return bench_fail(s->samples, is_ours ? BENCH_OWNER_FIRMWARE : BENCH_OWNER_CONFIGURATION, err,
                          "the network cannot be left%s: %s", is_ours ? "" : ", it is the program's own",
                          esp_err_to_name(err));
    }
    int64_t asked_us = esp_timer_get_time();
    err = join(s);
    if (err != ESP_OK) {
        return bench_fail(s->samples, owner_of(err), err, "the network did not come up again: %s",
                          esp_err_to_name(err));
    }
    bench_samples_set(s->samples, row, COLUMN_BOOT, (uint32_t)agent_started_us());
    bench_samples_set(s->samples, row, COLUMN_JOIN, (uint32_t)(esp_timer_get_time() - asked_us));
    return connect_and_publish(s, row);
}

static esp_err_t measure(startup_t *s) {
    size_t cycles = (size_t)bench_param_int(s->run, "cycles");
    esp_err_t err = bench_samples_begin(s->samples, cycles, 0);
    for (size_t row = 0; row < cycles && err == ESP_OK; row++) {
        err = bench_aborted(s->run) ? ESP_ERR_INVALID_STATE : measure_row(s, row);
    }
    return err;
}

static esp_err_t run(const bench_run_t *bench_run, bench_samples_t *samples) {
    startup_t *s = calloc(1, sizeof(*s));
    EventGroupHandle_t acknowledged = xEventGroupCreate();
    if (s == NULL || acknowledged == NULL) {
        free(s);
        if (acknowledged != NULL) {
            vEventGroupDelete(acknowledged);
        }
        return ESP_ERR_NO_MEM;
    }
    *s = (startup_t){.run = bench_run, .samples = samples, .acknowledged = acknowledged};
    s->timeout_ms = (uint32_t)bench_param_int(bench_run, "timeout_ms");
    s->link = (mqtt_link_t){
        .run = bench_run,
        .samples = samples,
        .transport = (mqtt_link_transport_t)bench_param_int(bench_run, "transport"),
        .nodelay = true,
        .on_event = on_event,
        .context = s,
    };
    mqtt_link_topic(s->topic, "startup");
    esp_err_t err = measure(s);
    vEventGroupDelete(acknowledged);
    free(s);
    return err;
}

static const bench_parameter_t PARAMETERS[] = {
    {.key = "transport", .type = BENCH_CHOICE, .choices = mqtt_link_transports},
    {.key = "cycles", .type = BENCH_INT, .def = 10, .min = 1, .max = 1000},
    {.key = "timeout_ms", .type = BENCH_INT, .def = 30000, .min = 100, .max = 60000},
};

static const char *const COLUMNS[] = {"boot_us", "join_us", "connect_us", "publish_us", "outcome"};

const bench_t bench_startup = {
    .name = "startup",
    .parameters = PARAMETERS,
    .parameter_count = sizeof(PARAMETERS) / sizeof(PARAMETERS[0]),
    .columns = COLUMNS,
    .column_count = sizeof(COLUMNS) / sizeof(COLUMNS[0]),
    .run = run,
};
