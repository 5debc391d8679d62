/* SPDX-License-Identifier: Apache-2.0 */
/* A gateway's run as the requester leads it: ready, requests, another phase, more requests, the end.
 *
 * docs/reference/http-gateway.md has the topics and messages.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "agent/bench.h"
#include "freertos/FreeRTOS.h"
#include "freertos/queue.h"
#include "http_link/gateway.h"
#include "mqtt_link/link.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HTTP_SESSION_PHASES = 2 };

/* Choices of the parameters `order` and `reconnect`. */
extern const char *const http_session_orders[];
extern const char *const http_session_reconnects[];

typedef struct {
    /* Set these before http_session_create(). */
    const bench_run_t *run;
    bench_samples_t *samples;
    http_gateway_t *gateway;

    mqtt_link_t link; /* the gateway's too */
    QueueHandle_t controls;
    char requests_topic[MQTT_LINK_TOPIC_SIZE], control_topic[MQTT_LINK_TOPIC_SIZE];
    char ready_topic[MQTT_LINK_TOPIC_SIZE];
    unsigned phase;
    atomic_bool connecting; /* the mqtt task writes what follows */
    int64_t connect_us, connected_us;
    int64_t connack_us[HTTP_SESSION_PHASES]; /* from beginning to connect: TCP, TLS, CONNECT, CONNACK */
    int64_t suback_us[HTTP_SESSION_PHASES];  /* from then to the last SUBACK */
} http_session_t;

/* Reads the parameters transport and qos. Returns ESP_ERR_NO_MEM; http_session_delete() afterwards all the
 * same. */
esp_err_t http_session_create(http_session_t *session);

/* After http_gateway_stop(). */
void http_session_delete(http_session_t *session);

/* Connect, say that the gateway is ready, and serve until the requester ends the run. Reads the parameters
 * order, pause_ms, timeout_ms and reconnect.
 *
 * Returns ESP_OK, ESP_ERR_INVALID_STATE where the host aborted, or what bench_fail() was told: there is no
 * connection (mqtt_link_open()), or the requester fell silent (rig). */
esp_err_t http_session_run(http_session_t *session);

/* Add to the end line how long connecting took in each phase, and what the connection was like. */
void http_session_environment(const http_session_t *session);

#ifdef __cplusplus
}
#endif
