/* SPDX-License-Identifier: Apache-2.0 */
// The client as its own sources see it.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "esp_timer.h"
#include "esp_tls_errors.h"
#include "freertos/FreeRTOS.h"
#include "freertos/event_groups.h"
#include "freertos/semphr.h"
#include "freertos/task.h"
#include "mqtt_client.h"
#include "mqtt_config.h"
#include "outbox.h"
#include "packet.h"

typedef enum {
    MQTT_STATE_INIT = 0, // not started, or about to connect
    MQTT_STATE_DISCONNECTED,
    MQTT_STATE_CONNECTED,
    MQTT_STATE_WAIT_RECONNECT,
} mqtt_state_t;

// The user's configuration with defaults filled in; strings are copies, certificates are not.
typedef struct {
    char *host;
    char *username;
    char *password;
    char *client_id;
    const char *scheme;
    int port;
    const char *ca_pem;
    const char *cert_pem;
    const char *key_pem;
    const char *common_name;
    bool skip_common_name;
    bool clean_session;
    bool auto_reconnect;
    int keepalive_s; // 0: off
    int retransmit_timeout_ms;
    int network_timeout_ms;
    int reconnect_timeout_ms;
    int task_priority;
    int task_stack_bytes;
    int in_buffer_bytes;
    int out_buffer_bytes;
    uint64_t outbox_limit_bytes;
} mqtt_settings_t;

// A packet that is being received. It may be longer than the buffer: then only its start is in it.
typedef struct {
    uint8_t *bytes;
    size_t size;
    size_t have;
    size_t total_length; // 0 until known
} mqtt_in_buffer_t;

#define MQTT_MAX_HANDLERS 8

typedef struct {
    esp_mqtt_event_id_t event;
    esp_event_handler_t handler;
    void *arg;
} mqtt_handler_t;

enum { MQTT_STOPPED_BIT = 1, MQTT_RECONNECT_BIT = 2, MQTT_DISCONNECT_BIT = 4 };

struct esp_mqtt_client {
    mqtt_settings_t settings;
    SemaphoreHandle_t api_lock; // recursive; held by every call and by the task, except while it polls
    EventGroupHandle_t bits;
    TaskHandle_t task;
    atomic_bool run;
    _Atomic mqtt_state_t state;
    esp_transport_list_handle_t transports;
    esp_transport_handle_t transport;
    mqtt_in_buffer_t in;
    mqtt_out_buffer_t out;
    outbox_t *outbox;
    uint16_t last_id;
    uint64_t keepalive_ms; // when the last PINGRESP came
    bool waiting_for_pingresp;
    uint64_t reconnect_ms; // when the wait for the next attempt began
    atomic_int wait_ms;    // how long it lasts
    uint64_t last_resend_ms;
    mqtt_handler_t handlers[MQTT_MAX_HANDLERS];
    size_t handler_count;
    esp_mqtt_error_codes_t error;
};

static inline void mqtt_lock(esp_mqtt_client_handle_t client) {
    xSemaphoreTakeRecursive(client->api_lock, portMAX_DELAY);
}

static inline void mqtt_unlock(esp_mqtt_client_handle_t client) {
    xSemaphoreGiveRecursive(client->api_lock);
}

static inline uint64_t mqtt_now_ms(void) {
    return (uint64_t)(esp_timer_get_time() / 1000);
}

static inline bool mqtt_timed_out(uint64_t since_ms, uint64_t timeout_ms) {
    return (int64_t)(since_ms + timeout_ms - mqtt_now_ms()) <= 0;
}

// settings.c
esp_err_t mqtt_settings_apply(mqtt_settings_t *settings, const esp_mqtt_client_config_t *config);
void mqtt_settings_free(mqtt_settings_t *settings);

// events.c; handlers run in the calling task, with the API lock held.
void mqtt_dispatch(esp_mqtt_client_handle_t client, esp_mqtt_event_t *event);
void mqtt_dispatch_id(esp_mqtt_client_handle_t client, esp_mqtt_event_id_t event_id, int msg_id);
void mqtt_dispatch_transport_error(esp_mqtt_client_handle_t client);

// connection.c
esp_err_t mqtt_connection_open(esp_mqtt_client_handle_t client); // transport, CONNECT, CONNACK
void mqtt_connection_abort(esp_mqtt_client_handle_t client);     // close, DISCONNECTED, wait to reconnect
esp_err_t mqtt_write(esp_mqtt_client_handle_t client, const uint8_t *data,
                     size_t length); // one packet or piece
esp_err_t mqtt_write_frame(esp_mqtt_client_handle_t client, const mqtt_frame_t *frame);
uint16_t mqtt_next_id(esp_mqtt_client_handle_t client);

// receive.c
typedef enum {
    MQTT_RECEIVED_PACKET,
    MQTT_RECEIVED_NOTHING,
    MQTT_RECEIVED_PART,
    MQTT_RECEIVE_FAILED
} mqtt_receive_t;
mqtt_receive_t mqtt_receive(esp_mqtt_client_handle_t client, int timeout_ms);
void mqtt_receive_reset(esp_mqtt_client_handle_t client);

// handle.c: takes what has arrived, at most one packet. ESP_FAIL: the connection is of no more use.
esp_err_t mqtt_process_incoming(esp_mqtt_client_handle_t client);

// task.c
void mqtt_task(void *client);
