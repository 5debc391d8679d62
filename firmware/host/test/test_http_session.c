/* SPDX-License-Identifier: Apache-2.0 */
/* http_link/session.c: how long a requester may be silent. Time is this test's to move. */
#include "idf_check.h"

#include "http_link/session.h"

enum { TIMEOUT_MS = 5000, LONG_US = 60 * 1000000 };

static int64_t s_ahead_us; /* of the real time */
static int s_opened;
static bool s_told_to_end;
static http_session_t *s_session;
static esp_err_t s_failed;

/* Linked with --wrap. */
int64_t __real_esp_timer_get_time(void);

int64_t __wrap_esp_timer_get_time(void) {
    return __real_esp_timer_get_time() + s_ahead_us;
}

static void say(const char *text) {
    const esp_mqtt_event_t event = {
        .event_id = MQTT_EVENT_DATA,
        .topic = s_session->control_topic,
        .topic_len = (int)strlen(s_session->control_topic),
        .data = (char *)text,
        .data_len = (int)strlen(text),
        .total_data_len = (int)strlen(text),
    };
    s_session->link.on_event(s_session->link.context, &event);
}

/* The second one takes a minute, after which the requester has still to come back. */
esp_err_t __wrap_mqtt_link_open(mqtt_link_t *link) {
    (void)link;
    if (++s_opened == 1) {
        say("{\"phase\":2}");
    } else {
        s_ahead_us += LONG_US;
    }
    return ESP_OK;
}

void __wrap_bench_note(const bench_run_t *run, const char *kind, const char *format, ...) {
    (void)run, (void)kind, (void)format;
    if (s_opened == 2 && s_told_to_end) {
        say("{\"end\":1}");
    } else if (s_opened == 2) {
        s_ahead_us += LONG_US; /* this time nobody says anything */
    }
}

int __wrap_esp_mqtt_client_publish(esp_mqtt_client_handle_t client, const char *topic, const char *data,
                                   int length, int qos, int retain) {
    (void)client, (void)topic, (void)data, (void)length, (void)qos, (void)retain;
    return 0;
}

int64_t __wrap_bench_param_int(const bench_run_t *run, const char *key) {
    (void)run;
    return strcmp(key, "timeout_ms") == 0 ? TIMEOUT_MS : 0; /* reconnect: both; order: together */
}

bool __wrap_bench_aborted(const bench_run_t *run) {
    (void)run;
    return false;
}

esp_err_t __wrap_bench_fail(bench_samples_t *samples, bench_owner_t owner, esp_err_t status,
                            const char *format, ...) {
    (void)samples, (void)owner, (void)format;
    s_failed = status;
    return status;
}

static esp_err_t run_session(bool told_to_end) {
    http_gateway_t gateway = {.row_count = 1};
    http_session_t session = {.gateway = &gateway};
    s_session = &session;
    s_told_to_end = told_to_end;
    s_opened = 0;
    s_failed = ESP_OK;
    CHECK_EQUAL(http_gateway_create(&gateway), ESP_OK);
    CHECK_EQUAL(http_session_create(&session), ESP_OK);
    esp_err_t err = http_session_run(&session);
    http_session_delete(&session);
    http_gateway_delete(&gateway);
    CHECK_EQUAL(s_opened, 2);
    return err;
}

static void a_slow_reconnection_is_no_silence(void) {
    CHECK_EQUAL(run_session(true), ESP_OK);
    CHECK_EQUAL(s_failed, ESP_OK);
}

static void silence_after_it_is(void) {
    CHECK_EQUAL(run_session(false), ESP_ERR_TIMEOUT);
    CHECK_EQUAL(s_failed, ESP_ERR_TIMEOUT);
}

void app_main(void) {
    a_slow_reconnection_is_no_silence();
    silence_after_it_is();
    exit(EXIT_SUCCESS);
}
