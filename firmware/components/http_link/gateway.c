/* SPDX-License-Identifier: Apache-2.0 */
/* The tasks of the gateway. */
#include "http_link/gateway.h"

#include <stdio.h>

#include "esp_timer.h"
#include "freertos/task.h"
#include "gateway_private.h"

enum {
    TASK_PRIORITY = 4,       /* the mqtt task has 5 */
    TASK_STACK_BYTES = 7168, /* esp-mqtt's task shakes hands on 6144; the rest is for an answer in pieces */
    JOBS_PER_CHANNEL = 8,
};

const char *const http_gateway_profiles[] = {"baseline", "agentoptions", "tight", "all", NULL};

bool http_gateway_is_over(void *context) {
    const http_gateway_t *gateway = context;
    return gateway->stop || bench_aborted(gateway->run);
}

/* ---- probes ---- */

static void probe_once(http_channel_t *channel) {
    http_gateway_t *gateway = channel->gateway;
    http_result_t result;
    channel->probing =
        true; /* before looking at `paused`, which http_gateway_pause() sets before looking here */
    if (!gateway->paused) {
        http_link_get(&channel->link, HTTP_GATEWAY_PROBE_PATH, NULL, HTTP_GATEWAY_PROBE_TIMEOUT_MS, &result);
        gateway->probes_count++;
        gateway->probes_failed_count += result.outcome != HTTP_OUTCOME_OK;
        gateway->no_memory_count += http_link_lacked_memory(&result);
    }
    channel->probing = false;
}

/* A period from one probe's beginning to the next one's; one that takes longer puts the next one off. */
static void probe(void *argument) {
    http_channel_t *channel = argument;
    const int64_t interval_us = (int64_t)channel->probe_interval_ms * 1000;
    int64_t due_us =
        esp_timer_get_time() + interval_us; /* not at once: the first request is to be a cold one */
    while (!http_gateway_is_over(channel->gateway)) {
        int64_t left_us = due_us - esp_timer_get_time();
        if (left_us > 0) {
            TickType_t left = pdMS_TO_TICKS((uint32_t)(left_us / 1000)) + 1; /* a whole tick, however long */
            const TickType_t check = pdMS_TO_TICKS(HTTP_GATEWAY_CHECK_MS);
            vTaskDelay(left < check ? left : check);
            continue;
        }
        due_us = esp_timer_get_time() + interval_us;
        probe_once(channel);
    }
    channel->probe_stack_free_min_bytes = (uint32_t)uxTaskGetStackHighWaterMark(NULL);
    xEventGroupSetBits(channel->gateway->ended, (EventBits_t)1 << (HTTP_GATEWAY_PROFILES + channel->profile));
    vTaskDelete(NULL);
}

/* ---- from outside ---- */

esp_err_t http_gateway_create(http_gateway_t *gateway) {
    gateway->publish_lock = xSemaphoreCreateMutex();
    gateway->ended = xEventGroupCreate();
    return gateway->publish_lock != NULL && gateway->ended != NULL ? ESP_OK : ESP_ERR_NO_MEM;
}

static esp_err_t start(http_gateway_t *gateway, TaskFunction_t function, http_channel_t *channel,
                       size_t bit) {
    char name[configMAX_TASK_NAME_LEN];
    snprintf(name, sizeof(name), "%s_%u", function == http_gateway_work ? "gateway" : "probe",
             (unsigned)channel->profile);
    if (xTaskCreatePinnedToCore(function, name, TASK_STACK_BYTES, channel, TASK_PRIORITY, NULL,
                                tskNO_AFFINITY) != pdTRUE) {
        return ESP_ERR_NO_MEM;
    }
    gateway->started |= (EventBits_t)1 << bit;
    return ESP_OK;
}

esp_err_t http_gateway_add(http_gateway_t *gateway, uint8_t profile, const http_link_config_t *config,
                           uint32_t probe_interval_ms) {
    http_channel_t *channel = &gateway->channels[gateway->channel_count++];
    *channel =
        (http_channel_t){.gateway = gateway, .profile = profile, .probe_interval_ms = probe_interval_ms};
    http_link_config_t own = *config;
    own.cancelled = http_gateway_is_over;
    own.context = gateway;
    char leaf[MQTT_LINK_TOPIC_SIZE];
    snprintf(leaf, sizeof(leaf), "%s/probe/01/req", http_gateway_profiles[profile]);
    mqtt_link_topic(channel->request_topic, leaf);
    snprintf(leaf, sizeof(leaf), "%s/probe/01/res", http_gateway_profiles[profile]);
    mqtt_link_topic(channel->response_topic, leaf);
    esp_err_t err = http_link_create(&channel->link, &own);
    channel->jobs = xQueueCreate(JOBS_PER_CHANNEL, sizeof(http_gateway_job_t));
    err = channel->jobs != NULL ? err : ESP_ERR_NO_MEM;
    err = err == ESP_OK ? start(gateway, http_gateway_work, channel, profile) : err;
    if (err == ESP_OK && probe_interval_ms > 0) {
        err = start(gateway, probe, channel, HTTP_GATEWAY_PROFILES + (size_t)profile);
    }
    return err;
}

static bool is_idle(const http_gateway_t *gateway) {
    for (size_t i = 0; i < gateway->channel_count; i++) {
        if (gateway->channels[i].probing || uxQueueMessagesWaiting(gateway->channels[i].jobs) > 0) {
            return false;
        }
    }
    return true;
}

bool http_gateway_pause(http_gateway_t *gateway) {
    gateway->paused = true;
    while (!is_idle(gateway) && !http_gateway_is_over(gateway)) {
        vTaskDelay(pdMS_TO_TICKS(HTTP_GATEWAY_CHECK_MS / 10));
    }
    return !http_gateway_is_over(gateway);
}

void http_gateway_resume(http_gateway_t *gateway) {
    gateway->paused = false;
}

void http_gateway_set_connected(http_gateway_t *gateway, bool connected) {
    xSemaphoreTake(gateway->publish_lock, portMAX_DELAY);
    gateway->connected = connected;
    xSemaphoreGive(gateway->publish_lock);
}

void http_gateway_stop(http_gateway_t *gateway) {
    gateway->stop = true;
    if (gateway->started != 0) {
        xEventGroupWaitBits(gateway->ended, gateway->started, pdFALSE, pdTRUE, portMAX_DELAY);
    }
    gateway->started = 0;
}

static uint32_t smaller(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

void http_gateway_environment(const http_gateway_t *gateway) {
    bench_samples_t *samples = gateway->samples;
    uint32_t worker_bytes = UINT32_MAX, probe_bytes = UINT32_MAX; /* of the tightest of its kind */
    for (size_t i = 0; i < gateway->channel_count; i++) {
        const http_channel_t *channel = &gateway->channels[i];
        worker_bytes = smaller(worker_bytes, channel->worker_stack_free_min_bytes);
        probe_bytes = channel->probe_interval_ms > 0
                          ? smaller(probe_bytes, channel->probe_stack_free_min_bytes)
                          : probe_bytes;
    }
    bench_environment_int(samples, "probes_count", gateway->probes_count);
    bench_environment_int(samples, "probes_failed_count", gateway->probes_failed_count);
    bench_environment_int(samples, "bad_requests_count", gateway->bad_requests_count);
    bench_environment_int(samples, "reused_count", gateway->reused_count);
    bench_environment_int(samples, "resumed_count", gateway->resumed_count);
    bench_environment_int(samples, "retried_count", gateway->retried_count);
    bench_environment_int(samples, "no_memory_count", gateway->no_memory_count);
    bench_environment_stack(samples, "gateway", worker_bytes);
    if (probe_bytes != UINT32_MAX) {
        bench_environment_stack(samples, "probe", probe_bytes);
    }
}

void http_gateway_delete(http_gateway_t *gateway) {
    http_gateway_stop(gateway);
    for (size_t i = 0; i < gateway->channel_count; i++) {
        http_link_delete(&gateway->channels[i].link);
        if (gateway->channels[i].jobs != NULL) {
            vQueueDelete(gateway->channels[i].jobs);
        }
    }
    if (gateway->ended != NULL) {
        vEventGroupDelete(gateway->ended);
    }
    if (gateway->publish_lock != NULL) {
        vSemaphoreDelete(gateway->publish_lock);
    }
}
