/* SPDX-License-Identifier: Apache-2.0 */
/* The gateway between MQTT and HTTP: for each profile a task that fetches what is requested and publishes the
 * answer, and one that probes the server's health, side by side.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "agent/bench.h"
#include "freertos/FreeRTOS.h"
#include "freertos/event_groups.h"
#include "freertos/queue.h"
#include "freertos/semphr.h"
#include "http_link/link.h"
#include "http_link/message.h"
#include "mqtt_link/link.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HTTP_GATEWAY_PROFILES = 3, HTTP_GATEWAY_PROBE_TIMEOUT_MS = 3000 };

#define HTTP_GATEWAY_PROBE_PATH "/probe"

/* A request's columns. */
enum {
    HTTP_COLUMN_PHASE,
    HTTP_COLUMN_READ,
    HTTP_COLUMN_RECEIVED,
    HTTP_COLUMN_DNS,
    HTTP_COLUMN_TCP,
    HTTP_COLUMN_TLS,
    HTTP_COLUMN_HTTP,
    HTTP_COLUMN_PUBLISHED,
    HTTP_COLUMN_OUTCOME,
    HTTP_COLUMN_REUSED,
    HTTP_COLUMN_RESUMED,
    HTTP_COLUMN_PROFILE,
};

typedef struct http_gateway http_gateway_t;

/* A profile at work. */
typedef struct {
    http_gateway_t *gateway;
    uint8_t profile;            /* 0 .. HTTP_GATEWAY_PROFILES - 1 */
    uint32_t probe_interval_ms; /* 0: none */
    char request_topic[MQTT_LINK_TOPIC_SIZE], response_topic[MQTT_LINK_TOPIC_SIZE];
    http_link_t link;
    QueueHandle_t jobs;
    atomic_bool probing;
    uint32_t worker_stack_free_min_bytes, probe_stack_free_min_bytes; /* when they have ended */
} http_channel_t;

struct http_gateway {
    /* Set these before http_gateway_create(). */
    const bench_run_t *run;
    bench_samples_t *samples;
    int64_t t0_us;
    size_t row_count; /* requests that there is room for */
    int qos;
    uint32_t timeout_ms;
    const mqtt_link_t *mqtt;

    http_channel_t channels[HTTP_GATEWAY_PROFILES];
    size_t channel_count;
    SemaphoreHandle_t publish_lock; /* who has it may publish, or take the MQTT connection away */
    EventGroupHandle_t ended;       /* a bit for each task */
    EventBits_t started;
    atomic_bool stop, paused;
    atomic_bool connected;      /* there is a connection to publish on; changed with publish_lock */
    atomic_uint requests_count; /* taken, each of them with a row */
    atomic_uint last_phase;     /* of the last request taken */
    atomic_uint bad_requests_count, probes_count, probes_failed_count;
    atomic_uint reused_count, resumed_count, retried_count;
    atomic_uint no_memory_count; /* requests and probes that failed for it */
};

/* Returns ESP_ERR_NO_MEM; http_gateway_delete() afterwards all the same. */
esp_err_t http_gateway_create(http_gateway_t *gateway);
void http_gateway_delete(http_gateway_t *gateway);

/* Add a profile, with its connections and its task of requests. Returns ESP_ERR_NO_MEM. */
esp_err_t http_gateway_add(http_gateway_t *gateway, uint8_t profile, const http_link_config_t *config,
                           uint32_t probe_interval_ms);

/* Topic segment of a profile: the choices of a parameter `profile` but for the last, `all`. */
extern const char *const http_gateway_profiles[];

/* Take a message from MQTT, if its topic is a request's: false where it is not. In the mqtt task. */
bool http_gateway_on_data(http_gateway_t *gateway, const esp_mqtt_event_t *event);

/* Until http_gateway_resume() no probe begins. Waits until no request is being handled and no probe is under
 * way, which lasts as long as a GET can. False where the run was aborted meanwhile. */
bool http_gateway_pause(http_gateway_t *gateway);
void http_gateway_resume(http_gateway_t *gateway);

/* Say whether there is an MQTT connection; it is not taken away while somebody publishes. */
void http_gateway_set_connected(http_gateway_t *gateway, bool connected);

/* End the tasks; afterwards the stack margins are known. */
void http_gateway_stop(http_gateway_t *gateway);

/* Add counts and stack margins to the end line. */
void http_gateway_environment(const http_gateway_t *gateway);

#ifdef __cplusplus
}
#endif
