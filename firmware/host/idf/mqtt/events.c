/* SPDX-License-Identifier: Apache-2.0 */
#include "client_priv.h"

static const char MQTT_EVENTS[] = "MQTT_EVENTS";

esp_err_t esp_mqtt_client_register_event(esp_mqtt_client_handle_t client, esp_mqtt_event_id_t event,
                                         esp_event_handler_t event_handler, void *event_handler_arg) {
    if (client == NULL || event_handler == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    mqtt_lock(client);
    bool full = client->handler_count == MQTT_MAX_HANDLERS;
    if (!full) {
        client->handlers[client->handler_count++] = (mqtt_handler_t){event, event_handler, event_handler_arg};
    }
    mqtt_unlock(client);
    return full ? ESP_ERR_NO_MEM : ESP_OK;
}

esp_err_t esp_mqtt_client_unregister_event(esp_mqtt_client_handle_t client, esp_mqtt_event_id_t event,
                                           esp_event_handler_t event_handler) {
    if (client == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    mqtt_lock(client);
    size_t kept = 0;
    for (size_t i = 0; i < client->handler_count; i++) {
        if (client->handlers[i].event != event || client->handlers[i].handler != event_handler) {
            client->handlers[kept++] = client->handlers[i];
        }
    }
    client->handler_count = kept;
    mqtt_unlock(client);
    return ESP_OK;
}

void mqtt_dispatch(esp_mqtt_client_handle_t client, esp_mqtt_event_t *event) {
    event->client = client;
    event->protocol_ver = MQTT_PROTOCOL_V_3_1_1;
    event->error_handle = &client->error;
    for (size_t i = 0; i < client->handler_count; i++) {
        const mqtt_handler_t *h = &client->handlers[i];
        if (h->event == MQTT_EVENT_ANY || h->event == event->event_id) {
            h->handler(h->arg, MQTT_EVENTS, event->event_id, event);
        }
    }
}

void mqtt_dispatch_id(esp_mqtt_client_handle_t client, esp_mqtt_event_id_t event_id, int msg_id) {
    esp_mqtt_event_t event = {.event_id = event_id, .msg_id = msg_id};
    mqtt_dispatch(client, &event);
}

void mqtt_dispatch_transport_error(esp_mqtt_client_handle_t client) {
    esp_tls_error_handle_t last = esp_transport_get_error_handle(client->transport);
    client->error = (esp_mqtt_error_codes_t){
        .error_type = MQTT_ERROR_TYPE_TCP_TRANSPORT,
        .esp_tls_last_esp_err = last->last_error,
        .esp_tls_stack_err = last->esp_tls_error_code,
        .esp_tls_cert_verify_flags = last->esp_tls_flags,
        .esp_transport_sock_errno = esp_transport_get_errno(client->transport),
    };
    *last = (struct esp_tls_last_error){0};
    mqtt_dispatch_id(client, MQTT_EVENT_ERROR, 0);
}
