/* SPDX-License-Identifier: Apache-2.0 */
/* The gateway's MQTT side: phases, and what the requester says on the control topic. */
#include "http_link/session.h"

#include <stdio.h>
#include <string.h>

#include "esp_timer.h"

enum { ORDER_TOGETHER, ORDER_INTERLEAVED };
enum { RECONNECT_BOTH, RECONNECT_REQUESTER, RECONNECT_BOARD, RECONNECT_NONE };
enum { CONTROL_END = -1, CONTROLS = 4, PHASES = HTTP_SESSION_PHASES };
enum { CHECK_MS = 50, READY_US = 1000000, SILENCE_MARGIN_MS = 15000 };

const char *const http_session_orders[] = {"together", "interleaved", NULL};
const char *const http_session_reconnects[] = {"both", "requester", "board", "none", NULL};

/* ---- in the mqtt task ---- */

static void on_control(http_session_t *s, const esp_mqtt_event_t *event) {
    uint64_t phase = 0, end = 0;
    size_t length = (size_t)event->data_len;
    int control = 0;
    if (http_message_number(event->data, length, "end", &end) && end == 1) {
        control = CONTROL_END;
    } else if (http_message_number(event->data, length, "phase", &phase) && phase == PHASES) {
        control = PHASES;
    }
    if (control == 0) {
        s->gateway->bad_requests_count++;
    } else {
        xQueueSend(s->controls, &control, 0); /* where it is full, they are told again */
    }
}

static void on_data(http_session_t *s, const esp_mqtt_event_t *event) {
    size_t length = (size_t)event->topic_len;
    if (event->current_data_offset > 0) {
        return; /* the rest of a message that was too long at its beginning */
    }
    if (http_gateway_on_data(s->gateway, event) || event->retain) {
        return;
    }
    if (strlen(s->control_topic) == length && memcmp(s->control_topic, event->topic, length) == 0) {
        on_control(s, event);
    } else {
        s->gateway->bad_requests_count++;
    }
}

static void on_event(void *context, const esp_mqtt_event_t *event) {
    http_session_t *s = context;
    int64_t now_us = esp_timer_get_time();
    if (event->event_id == MQTT_EVENT_DATA) {
        on_data(s, event);
    } else if (!s->connecting) {
        return;
    } else if (event->event_id == MQTT_EVENT_BEFORE_CONNECT) {
        s->connect_us = now_us;
    } else if (event->event_id == MQTT_EVENT_CONNECTED) {
        s->connected_us = now_us;
        s->connack_us[s->phase - 1] = now_us - s->connect_us;
    } else if (event->event_id == MQTT_EVENT_SUBSCRIBED) {
        s->suback_us[s->phase - 1] = now_us - s->connected_us; /* the last one stays */
    }
}

/* ---- phases ---- */

static esp_err_t connect(http_session_t *s) {
    s->connecting = true;
    esp_err_t err = mqtt_link_open(&s->link);
    s->connecting = false;
    http_gateway_set_connected(s->gateway, err == ESP_OK);
    return err;
}

/* Give up all connections, and come back. */
static esp_err_t reconnect(http_session_t *s) {
    if (!http_gateway_pause(s->gateway)) {
        return ESP_ERR_INVALID_STATE;
    }
    http_gateway_set_connected(s->gateway, false);
    mqtt_link_close(&s->link);
    for (size_t i = 0; i < s->gateway->channel_count; i++) {
        http_link_drop(&s->gateway->channels[i].link);
    }
    esp_err_t err = connect(s);
    http_gateway_resume(s->gateway);
    return err;
}

static esp_err_t begin_phase(http_session_t *s, unsigned phase) {
    if (phase == s->phase) {
        return ESP_OK; /* told again */
    }
    s->phase = phase;
    int64_t who = bench_param_int(s->run, "reconnect");
    return who == RECONNECT_BOTH || who == RECONNECT_BOARD ? reconnect(s) : ESP_OK;
}

static void tell_ready(const http_session_t *s) {
    const char *text = s->phase == 1 ? "{\"phase\":1}" : "{\"phase\":2}";
    esp_mqtt_client_publish(s->link.client, s->ready_topic, text, 0, 0, 0);
    bench_note(s->run, "ready", "phase=%u", s->phase);
}

/* The longest that a requester may be silent: a request that it gave up, its pause, its way back. */
static int64_t silence_max_us(const http_session_t *s) {
    int64_t turns =
        bench_param_int(s->run, "order") == ORDER_INTERLEAVED ? (int64_t)s->gateway->channel_count : 1;
    int64_t request_ms = bench_param_int(s->run, "pause_ms") + bench_param_int(s->run, "timeout_ms");
    return (turns * request_ms + SILENCE_MARGIN_MS) * 1000;
}

static esp_err_t fail_silent(const http_session_t *s) {
    return bench_fail(s->samples, BENCH_OWNER_RIG, ESP_ERR_TIMEOUT,
                      "the requester fell silent after %u of %u requests, and did not end the run",
                      atomic_load(&s->gateway->requests_count), (unsigned)s->gateway->row_count);
}

/* Until the requester ends it. */
static esp_err_t serve(http_session_t *s) {
    unsigned heard = 0;
    int64_t told_us = 0, heard_us = esp_timer_get_time();
    const int64_t silence_us = silence_max_us(s);
    esp_err_t err = ESP_OK;
    while (err == ESP_OK && !bench_aborted(s->run)) {
        int control = 0;
        if (atomic_load(&s->gateway->last_phase) != s->phase && esp_timer_get_time() - told_us >= READY_US) {
            told_us = esp_timer_get_time();
            tell_ready(s);
        }
        if (xQueueReceive(s->controls, &control, pdMS_TO_TICKS(CHECK_MS)) == pdTRUE) {
            if (control == CONTROL_END) {
                return http_gateway_pause(s->gateway) ? ESP_OK : ESP_ERR_INVALID_STATE;
            }
            told_us = (unsigned)control != s->phase ? 0 : told_us;
            err = begin_phase(s, (unsigned)control);
            heard_us = esp_timer_get_time(); /* coming back may have taken longer than any silence */
        }
        unsigned count = atomic_load(&s->gateway->requests_count);
        heard_us = count != heard ? esp_timer_get_time() : heard_us;
        heard = count;
        if (err == ESP_OK && esp_timer_get_time() - heard_us > silence_us) {
            err = fail_silent(s);
        }
    }
    return err != ESP_OK ? err : ESP_ERR_INVALID_STATE;
}

/* ---- from outside ---- */

static void set_up_link(http_session_t *s) {
    mqtt_link_topic(s->requests_topic, "+/probe/01/req");
    mqtt_link_topic(s->control_topic, "gateway/control");
    mqtt_link_topic(s->ready_topic, "gateway/ready");
    s->link = (mqtt_link_t){
        .run = s->run,
        .samples = s->samples,
        .transport = (mqtt_link_transport_t)bench_param_int(s->run, "transport"),
        .nodelay = true,
        .subscribe = s->requests_topic,
        .subscribe_also = s->control_topic,
        .subscribe_qos = (int)bench_param_int(s->run, "qos"),
        .on_event = on_event,
        .context = s,
    };
}

esp_err_t http_session_create(http_session_t *s) {
    set_up_link(s);
    s->phase = 1;
    s->controls = xQueueCreate(CONTROLS, sizeof(int));
    return s->controls != NULL ? ESP_OK : ESP_ERR_NO_MEM;
}

esp_err_t http_session_run(http_session_t *s) {
    esp_err_t err = connect(s);
    err = err == ESP_OK ? serve(s) : err;
    http_gateway_set_connected(s->gateway, false);
    return err;
}

void http_session_environment(const http_session_t *s) {
    for (unsigned phase = 1; phase <= s->phase; phase++) {
        char key[32];
        snprintf(key, sizeof(key), "phase%u_connack_us", phase);
        bench_environment_int(s->samples, key, s->connack_us[phase - 1]);
        snprintf(key, sizeof(key), "phase%u_suback_us", phase);
        bench_environment_int(s->samples, key, s->suback_us[phase - 1]);
    }
    mqtt_link_environment(&s->link);
}

void http_session_delete(http_session_t *s) {
    mqtt_link_close(&s->link);
    if (s->controls != NULL) {
        vQueueDelete(s->controls);
    }
}
