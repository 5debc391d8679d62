/* SPDX-License-Identifier: Apache-2.0 */
// The mqtt task: connects, receives, sends what was enqueued, resends, keeps alive, reconnects.
#include "client_priv.h"
#include "esp_log.h"

static const char *TAG = "mqtt_client";

static void drop_expired(esp_mqtt_client_handle_t client) {
    int id;
    while ((id = outbox_remove_expired(client->outbox, mqtt_now_ms(),
                                       CONFIG_MQTT_OUTBOX_EXPIRED_TIMEOUT_MS)) >= 0) {
#ifdef CONFIG_MQTT_REPORT_DELETED_MESSAGES
        mqtt_dispatch_id(client, MQTT_EVENT_DELETED, id);
#endif
    }
}

static bool send_item(esp_mqtt_client_handle_t client, const outbox_item_t *item) {
    if (mqtt_write(client, item->packet, item->length) == ESP_OK) {
        return true;
    }
    ESP_LOGE(TAG, "Error to resend data");
    mqtt_connection_abort(client);
    return false;
}

static void send_queued(esp_mqtt_client_handle_t client, outbox_item_t *item) {
    if (!send_item(client, item)) {
        return;
    }
    if (item->type == MQTT_PUBLISH && item->qos == 0) {
        outbox_remove(client->outbox, item);
    } else if (item->type == MQTT_PUBLISH) {
        item->state = OUTBOX_TRANSMITTED;
    }
}

static bool due(const esp_mqtt_client_handle_t client, const outbox_item_t *item) {
    return item != NULL &&
           client->last_resend_ms - item->time_ms > (uint64_t)client->settings.retransmit_timeout_ms;
}

static void resend_transmitted(esp_mqtt_client_handle_t client) {
    outbox_item_t *item = outbox_first(client->outbox, OUTBOX_TRANSMITTED);
    if (!due(client, item)) {
        return;
    }
    if (item->type == MQTT_PUBLISH) {
        mqtt_set_dup(item->packet);
    }
    send_item(client, item);
}

static void resend_pubrel(esp_mqtt_client_handle_t client) {
    outbox_item_t *item = outbox_first(client->outbox, OUTBOX_ACKNOWLEDGED);
    if (!due(client, item) || client->state != MQTT_STATE_CONNECTED) {
        return;
    }
    mqtt_frame_t frame = mqtt_encode_ack(&client->out, MQTT_PUBREL, item->id);
    if (mqtt_write_frame(client, &frame) != ESP_OK) {
        mqtt_connection_abort(client);
    }
}

// One stored message a loop; only when none is waiting, one message a retransmit time-out is sent again.
static void send_from_outbox(esp_mqtt_client_handle_t client) {
    if (client->last_resend_ms == 0) {
        client->last_resend_ms = mqtt_now_ms();
    }
    outbox_item_t *queued = outbox_first(client->outbox, OUTBOX_QUEUED);
    if (queued != NULL) {
        send_queued(client, queued);
    } else if (mqtt_timed_out(client->last_resend_ms, (uint64_t)client->settings.retransmit_timeout_ms)) {
        client->last_resend_ms = mqtt_now_ms();
        resend_transmitted(client);
        resend_pubrel(client);
    }
}

static void ping(esp_mqtt_client_handle_t client) {
    mqtt_frame_t frame = mqtt_encode_empty(&client->out, MQTT_PINGREQ);
    client->waiting_for_pingresp = mqtt_write_frame(client, &frame) == ESP_OK;
    if (!client->waiting_for_pingresp) {
        ESP_LOGE(TAG, "Can't send ping, disconnected");
        mqtt_connection_abort(client);
    }
}

// A ping every half keepalive time, whether or not anything else is sent, as esp-mqtt does.
static void keep_alive(esp_mqtt_client_handle_t client) {
    uint64_t keepalive_ms = (uint64_t)client->settings.keepalive_s * 1000;
    if (keepalive_ms == 0 || client->state != MQTT_STATE_CONNECTED) {
        return;
    }
    if (!client->waiting_for_pingresp && mqtt_timed_out(client->keepalive_ms, keepalive_ms / 2)) {
        ping(client);
    } else if (client->waiting_for_pingresp && mqtt_timed_out(client->keepalive_ms, keepalive_ms)) {
        ESP_LOGE(TAG, "No PING_RESP, disconnected");
        mqtt_connection_abort(client);
    }
}

static void connect_or_wait(esp_mqtt_client_handle_t client) {
    xEventGroupClearBits(client->bits, MQTT_RECONNECT_BIT | MQTT_DISCONNECT_BIT);
    esp_err_t err = mqtt_connection_open(client);
    if (err == ESP_ERR_NO_MEM) {
        client->run = false;
    } else if (err != ESP_OK) {
        mqtt_connection_abort(client);
    }
}

static void say_goodbye(esp_mqtt_client_handle_t client) {
    mqtt_frame_t frame = mqtt_encode_empty(&client->out, MQTT_DISCONNECT);
    mqtt_write_frame(client, &frame);
    mqtt_connection_abort(client);
}

static void serve_connection(esp_mqtt_client_handle_t client) {
    EventBits_t asked = xEventGroupWaitBits(client->bits, MQTT_DISCONNECT_BIT, pdTRUE, pdTRUE, 0);
    if (asked & MQTT_DISCONNECT_BIT) {
        say_goodbye(client);
        return;
    }
    if (mqtt_process_incoming(client) != ESP_OK) {
        // A handler's publish may have given up the connection already.
        if (client->state == MQTT_STATE_CONNECTED) {
            mqtt_connection_abort(client);
        }
        return;
    }
    if (client->state == MQTT_STATE_CONNECTED) {
        send_from_outbox(client);
    }
    if (client->state == MQTT_STATE_CONNECTED) {
        keep_alive(client);
    }
}

// true: time to connect again.
static bool wait_is_over(esp_mqtt_client_handle_t client) {
    if (client->settings.auto_reconnect) {
        return mqtt_now_ms() - client->reconnect_ms > (uint64_t)client->wait_ms;
    }
    return (xEventGroupGetBits(client->bits) & MQTT_RECONNECT_BIT) != 0;
}

static void step(esp_mqtt_client_handle_t client) {
    mqtt_lock(client);
    drop_expired(client);
    if (client->state == MQTT_STATE_INIT) {
        connect_or_wait(client);
    } else if (client->state == MQTT_STATE_CONNECTED) {
        serve_connection(client);
    } else if (client->state == MQTT_STATE_WAIT_RECONNECT && wait_is_over(client)) {
        client->state = MQTT_STATE_INIT;
    }
    mqtt_unlock(client);
}

// Without the lock, so that others publish meanwhile.
static void rest(esp_mqtt_client_handle_t client) {
    if (client->state == MQTT_STATE_WAIT_RECONNECT) {
        xEventGroupWaitBits(client->bits, MQTT_RECONNECT_BIT, pdFALSE, pdTRUE,
                            pdMS_TO_TICKS((uint32_t)client->wait_ms / 2));
    } else if (client->state == MQTT_STATE_CONNECTED &&
               esp_transport_poll_read(client->transport, CONFIG_MQTT_POLL_READ_TIMEOUT_MS) < 0) {
        mqtt_lock(client);
        if (client->run && client->state == MQTT_STATE_CONNECTED) {
            ESP_LOGE(TAG, "Poll read error, aborting connection");
            mqtt_connection_abort(client);
        }
        mqtt_unlock(client);
    }
}

void mqtt_task(void *argument) {
    esp_mqtt_client_handle_t client = argument;
    while (client->run) {
        step(client);
        if (client->run) {
            rest(client);
        }
    }
    mqtt_lock(client);
    if (client->transport != NULL) {
        esp_transport_close(client->transport);
    }
    outbox_clear(client->outbox);
    client->state = MQTT_STATE_DISCONNECTED;
    mqtt_unlock(client);
    xEventGroupSetBits(client->bits, MQTT_STOPPED_BIT);
    vTaskDelete(NULL);
}
