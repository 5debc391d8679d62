/* SPDX-License-Identifier: Apache-2.0 */
/* A request's way through the gateway: from its topic to a task, to the server, and back to a topic. */
#include <string.h>

#include "esp_timer.h"
#include "freertos/FreeRTOS.h"
#include "freertos/task.h"
#include "gateway_private.h"

#define REQUEST_PATH "/probe/01"

/* Returns when it was published: right before the call. */
static int64_t publish(http_channel_t *channel, const http_gateway_job_t *job, http_result_t *result) {
    http_gateway_t *gateway = channel->gateway;
    char text[HTTP_MESSAGE_RESPONSE_SIZE];
    xSemaphoreTake(gateway->publish_lock, portMAX_DELAY);
    int64_t published_us = esp_timer_get_time();
    size_t length = http_message_write_response(text, &job->request, result, bench_wall_clock_us() / 1000,
                                                (uint32_t)(published_us - job->received_us));
    bool sent = gateway->connected && esp_mqtt_client_publish(gateway->mqtt->client, channel->response_topic,
                                                              text, (int)length, gateway->qos, 0) >= 0;
    xSemaphoreGive(gateway->publish_lock);
    result->outcome = sent ? result->outcome : HTTP_OUTCOME_MQTT_LOST;
    return published_us;
}

static void store(const http_channel_t *channel, size_t row, const http_gateway_job_t *job,
                  const http_result_t *result, int64_t published_us) {
    const http_gateway_t *gateway = channel->gateway;
    const uint32_t values[] = {
        [HTTP_COLUMN_PHASE] = job->request.phase,
        [HTTP_COLUMN_READ] = job->request.read,
        [HTTP_COLUMN_RECEIVED] = (uint32_t)(job->received_us - gateway->t0_us),
        [HTTP_COLUMN_DNS] = result->dns_us,
        [HTTP_COLUMN_TCP] = result->tcp_us,
        [HTTP_COLUMN_TLS] = result->tls_us,
        [HTTP_COLUMN_HTTP] = result->http_us,
        [HTTP_COLUMN_PUBLISHED] = (uint32_t)(published_us - gateway->t0_us),
        [HTTP_COLUMN_OUTCOME] = result->outcome,
        [HTTP_COLUMN_REUSED] = result->reused,
        [HTTP_COLUMN_RESUMED] = result->resumed,
        [HTTP_COLUMN_PROFILE] = channel->profile,
    };
    for (size_t column = 0; column < sizeof(values) / sizeof(values[0]); column++) {
        bench_samples_set(gateway->samples, row, column, values[column]);
    }
}

/* What is left of the request's time: it runs from its arrival, or requests that wait behind a slow one would
 * each be fetched for somebody who has given them up. */
static uint32_t time_left_ms(const http_gateway_t *gateway, const http_gateway_job_t *job) {
    int64_t left_ms = gateway->timeout_ms - (esp_timer_get_time() - job->received_us) / 1000;
    return left_ms > 0 ? (uint32_t)left_ms : 0;
}

static void handle(http_channel_t *channel, const http_gateway_job_t *job) {
    http_gateway_t *gateway = channel->gateway;
    http_result_t result;
    size_t row = atomic_fetch_add(&gateway->requests_count, 1);
    if (row >= gateway->row_count) {
        atomic_fetch_sub(&gateway->requests_count, 1);
        gateway->bad_requests_count++;
        return;
    }
    http_link_get(&channel->link, REQUEST_PATH, job->request.id, time_left_ms(gateway, job), &result);
    gateway->reused_count += result.reused;
    gateway->resumed_count += result.resumed;
    gateway->retried_count += result.retried;
    gateway->no_memory_count += http_link_lacked_memory(&result);
    int64_t published_us = publish(channel, job, &result);
    store(channel, row, job, &result, published_us);
}

/* A job leaves the queue when it is done: an empty queue is an idle worker. */
void http_gateway_work(void *argument) {
    http_channel_t *channel = argument;
    http_gateway_job_t job;
    while (!http_gateway_is_over(channel->gateway)) {
        if (xQueuePeek(channel->jobs, &job, pdMS_TO_TICKS(HTTP_GATEWAY_CHECK_MS)) == pdTRUE) {
            handle(channel, &job);
            xQueueReceive(channel->jobs, &job, 0);
        }
    }
    channel->worker_stack_free_min_bytes = (uint32_t)uxTaskGetStackHighWaterMark(NULL);
    xEventGroupSetBits(channel->gateway->ended, (EventBits_t)1 << channel->profile);
    vTaskDelete(NULL);
}

bool http_gateway_on_data(http_gateway_t *gateway, const esp_mqtt_event_t *event) {
    http_gateway_job_t job = {.received_us = esp_timer_get_time()};
    size_t length = (size_t)event->topic_len;
    for (size_t i = 0; i < gateway->channel_count; i++) {
        http_channel_t *channel = &gateway->channels[i];
        if (strlen(channel->request_topic) != length ||
            memcmp(channel->request_topic, event->topic, length) != 0) {
            continue;
        }
        bool whole = event->data_len == event->total_data_len && !event->retain;
        bool sound = whole && http_message_read_request(event->data, (size_t)event->data_len, &job.request);
        if (!sound || xQueueSend(channel->jobs, &job, 0) != pdTRUE) {
            gateway->bad_requests_count++;
            return true;
        }
        gateway->last_phase = job.request.phase;
        return true;
    }
    return false;
}
