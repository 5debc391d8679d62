/* SPDX-License-Identifier: Apache-2.0 */
#include "mqtt_link/outage.h"

#include "esp_timer.h"

uint32_t mqtt_outage_now_us(const mqtt_outage_t *outage) {
    return (uint32_t)(esp_timer_get_time() - outage->t0_us);
}

void mqtt_outage_arm(mqtt_outage_t *outage) {
    outage->detected_us = outage->connected_us = outage->disconnects = 0;
    outage->connects_failed = outage->connect_failed_max_us = 0;
    atomic_store(&outage->over, false);
    atomic_store(&outage->armed, true);
}

static void on_acknowledged(mqtt_outage_t *outage) {
    uint32_t now = mqtt_outage_now_us(outage), last = atomic_load(&outage->last_ack_us);
    if (atomic_load(&outage->armed) && now - last >= outage->least_us) {
        outage->start_us = last;
        outage->end_us = now;
        atomic_store(&outage->armed, false);
        atomic_store(&outage->over, true);
    }
    atomic_store(&outage->last_ack_us, now);
    atomic_fetch_add(&outage->acks, 1);
}

static void on_attempt_failed(mqtt_outage_t *outage) {
    uint32_t took_us = mqtt_outage_now_us(outage) - outage->connecting_since_us;
    bool longest = took_us > outage->connect_failed_max_us;
    outage->connect_failed_max_us = longest ? took_us : outage->connect_failed_max_us;
    outage->connects_failed++;
}

static void on_disconnected(mqtt_outage_t *outage) {
    atomic_store(&outage->connected, false);
    if (atomic_load(&outage->armed)) {
        uint32_t since_us = mqtt_outage_now_us(outage) - atomic_load(&outage->last_ack_us);
        outage->detected_us = outage->disconnects == 0 ? since_us : outage->detected_us;
        outage->disconnects++;
        if (outage->connecting) {
            on_attempt_failed(outage);
        }
    }
    outage->connecting = false;
}

static void on_connected(mqtt_outage_t *outage) {
    outage->connecting = false;
    if (atomic_load(&outage->armed)) {
        outage->connected_us = mqtt_outage_now_us(outage) - atomic_load(&outage->last_ack_us);
    }
    atomic_store(&outage->connected, true);
}

void mqtt_outage_on_event(void *context, const esp_mqtt_event_t *event) {
    mqtt_outage_t *outage = context;
    switch (event->event_id) {
    case MQTT_EVENT_PUBLISHED:
        on_acknowledged(outage);
        break;
    case MQTT_EVENT_BEFORE_CONNECT:
        outage->connecting = true;
        outage->connecting_since_us = mqtt_outage_now_us(outage);
        break;
    case MQTT_EVENT_CONNECTED:
        on_connected(outage);
        break;
    case MQTT_EVENT_DISCONNECTED:
        on_disconnected(outage);
        break;
    default:
        break;
    }
}
