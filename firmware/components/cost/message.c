/* SPDX-License-Identifier: Apache-2.0 */
/* A message on its way: made, handed to esp-mqtt, acknowledged. */
#include <stdlib.h>

#include "load/message.h"
#include "mqtt_link/link.h"
#include "private.h"

enum { FIRST_NUMBER = 100000 };

/* ---- the payload ---- */

/* Numbers that always have as many digits, each of which has its price. */
static void write_payload(cost_t *cost) {
    uint32_t number = FIRST_NUMBER + cost->number;
    load_message_write(cost->payload, cost->payload_bytes, number, 1, number);
}

static bool repeat_serialise(cost_t *cost) {
    cost_mark(&cost->begin);
    write_payload(cost);
    cost_mark(&cost->end);
    return true;
}

const cost_part_t cost_serialise = {.repeat = repeat_serialise};

/* ---- esp-mqtt ---- */

typedef struct {
    mqtt_link_t link;
    cost_broker_t broker;
    cost_peer_t peer;
    SemaphoreHandle_t acknowledged;
    cost_moment_t acknowledged_at;
    char topic[MQTT_LINK_TOPIC_SIZE];
} mqtt_t;

/* In the mqtt task. */
static void on_event(void *context, const esp_mqtt_event_t *event) {
    mqtt_t *mqtt = context;
    if (event->event_id == MQTT_EVENT_PUBLISHED) {
        cost_mark(&mqtt->acknowledged_at);
        xSemaphoreGive(mqtt->acknowledged);
    }
}

static esp_err_t connect_mqtt(cost_t *cost, mqtt_t *mqtt) {
    mqtt->link = (mqtt_link_t){
        .run = cost->run,
        .samples = cost->samples,
        .host = COST_HOST,
        .port = COST_BROKER_PORT,
        .nodelay = true,
        .on_event = on_event,
        .context = mqtt,
    };
    mqtt->peer = (cost_peer_t){
        .port = COST_BROKER_PORT, .serve = cost_broker_serve, .context = &mqtt->broker, .listener = -1};
    mqtt_link_topic(mqtt->topic, "cost");
    esp_err_t err = cost_loopback();
    err = err == ESP_OK ? cost_peer_start(&mqtt->peer, cost->samples) : err;
    return err == ESP_OK ? mqtt_link_open(&mqtt->link) : err;
}

static esp_err_t open_mqtt(cost_t *cost) {
    mqtt_t *mqtt = calloc(1, sizeof(*mqtt));
    cost->own = mqtt;
    if (mqtt == NULL) {
        return ESP_ERR_NO_MEM;
    }
    mqtt->broker.published = xSemaphoreCreateBinary();
    mqtt->acknowledged = xSemaphoreCreateBinary();
    bool complete = mqtt->broker.published != NULL && mqtt->acknowledged != NULL;
    return complete ? connect_mqtt(cost, mqtt) : ESP_ERR_NO_MEM;
}

/* esp-mqtt's task is gone when the end line is written. */
static void note_stack(cost_t *cost) {
    TaskHandle_t task = xTaskGetHandle("mqtt_task");
    if (task != NULL) {
        bench_environment_stack(cost->samples, "mqtt_task", (uint32_t)uxTaskGetStackHighWaterMark(task));
    }
}

static void close_mqtt(cost_t *cost) {
    mqtt_t *mqtt = cost->own;
    if (mqtt == NULL) {
        return;
    }
    note_stack(cost);
    mqtt_link_close(&mqtt->link);
    cost_peer_stop(&mqtt->peer);
    if (mqtt->broker.published != NULL) {
        vSemaphoreDelete(mqtt->broker.published);
    }
    if (mqtt->acknowledged != NULL) {
        vSemaphoreDelete(mqtt->acknowledged);
    }
    free(mqtt);
}

/* The call alone is timed, and what comes of it awaited. */
static bool publish(cost_t *cost, int qos) {
    mqtt_t *mqtt = cost->own;
    write_payload(cost);
    cost_mark(&cost->begin);
    int id = esp_mqtt_client_publish(mqtt->link.client, mqtt->topic, cost->payload, (int)cost->payload_bytes,
                                     qos, 0);
    cost_mark(&cost->end);
    return id >= 0 && cost_await(mqtt->broker.published) && (qos == 0 || cost_await(mqtt->acknowledged));
}

static bool repeat_qos0(cost_t *cost) {
    return publish(cost, 0);
}

static bool repeat_qos1(cost_t *cost) {
    return publish(cost, 1);
}

/* From right before the broker sends its PUBACK until the client's event. */
static bool repeat_puback(cost_t *cost) {
    mqtt_t *mqtt = cost->own;
    bool done = publish(cost, 1);
    cost->begin = mqtt->broker.answered;
    cost->end = mqtt->acknowledged_at;
    return done;
}

const cost_part_t cost_publish_qos0 = {.open = open_mqtt, .repeat = repeat_qos0, .close = close_mqtt};
const cost_part_t cost_publish_qos1 = {.open = open_mqtt, .repeat = repeat_qos1, .close = close_mqtt};
const cost_part_t cost_puback_in = {.open = open_mqtt, .repeat = repeat_puback, .close = close_mqtt};
