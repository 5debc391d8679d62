/* SPDX-License-Identifier: Apache-2.0 */
// esp-mqtt's mqtt_client.h (the one of ESP-IDF v5.5) for MQTT 3.1.1: the fields and calls that the benchmarks
// use. Names, defaults, return values and events are esp-mqtt's; what differs is in
// docs/explain/host-mqtt.md.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "esp_err.h"
#include "esp_event.h"
#include "esp_transport.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct esp_mqtt_client *esp_mqtt_client_handle_t;

#define MQTT_OVER_TCP_SCHEME "mqtt"
#define MQTT_OVER_SSL_SCHEME "mqtts"

typedef enum esp_mqtt_event_id_t {
    MQTT_EVENT_ANY = -1,
    MQTT_EVENT_ERROR = 0, // error_handle
    MQTT_EVENT_CONNECTED, // session_present
    MQTT_EVENT_DISCONNECTED,
    MQTT_EVENT_SUBSCRIBED,   // msg_id, error_handle->error_type, data: the broker's return codes
    MQTT_EVENT_UNSUBSCRIBED, // msg_id
    MQTT_EVENT_PUBLISHED,    // msg_id; at PUBACK for QoS 1, at PUBCOMP for QoS 2
    MQTT_EVENT_DATA,         // one event for each piece of a message longer than the in buffer
    MQTT_EVENT_BEFORE_CONNECT,
    MQTT_EVENT_DELETED, // msg_id; only with CONFIG_MQTT_REPORT_DELETED_MESSAGES
    MQTT_USER_EVENT,    // never sent here
} esp_mqtt_event_id_t;

typedef enum esp_mqtt_connect_return_code_t {
    MQTT_CONNECTION_ACCEPTED = 0,
    MQTT_CONNECTION_REFUSE_PROTOCOL,
    MQTT_CONNECTION_REFUSE_ID_REJECTED,
    MQTT_CONNECTION_REFUSE_SERVER_UNAVAILABLE,
    MQTT_CONNECTION_REFUSE_BAD_USERNAME,
    MQTT_CONNECTION_REFUSE_NOT_AUTHORIZED
} esp_mqtt_connect_return_code_t;

typedef enum esp_mqtt_error_type_t {
    MQTT_ERROR_TYPE_NONE = 0,
    MQTT_ERROR_TYPE_TCP_TRANSPORT,
    MQTT_ERROR_TYPE_CONNECTION_REFUSED,
    MQTT_ERROR_TYPE_SUBSCRIBE_FAILED
} esp_mqtt_error_type_t;

typedef enum esp_mqtt_transport_t {
    MQTT_TRANSPORT_UNKNOWN = 0x0,
    MQTT_TRANSPORT_OVER_TCP,
    MQTT_TRANSPORT_OVER_SSL,
} esp_mqtt_transport_t;

typedef enum esp_mqtt_protocol_ver_t {
    MQTT_PROTOCOL_UNDEFINED = 0,
    MQTT_PROTOCOL_V_3_1,
    MQTT_PROTOCOL_V_3_1_1,
    MQTT_PROTOCOL_V_5,
} esp_mqtt_protocol_ver_t;

typedef struct esp_mqtt_error_codes {
    esp_err_t esp_tls_last_esp_err; // a code of esp_tls_errors.h
    int esp_tls_stack_err;          // mbedTLS's code where it has one, else OpenSSL's reason
    int esp_tls_cert_verify_flags;  // mbedTLS's MBEDTLS_X509_BADCERT_* bits
    esp_mqtt_error_type_t error_type;
    esp_mqtt_connect_return_code_t connect_return_code;
    int esp_transport_sock_errno;
} esp_mqtt_error_codes_t;

typedef struct esp_mqtt_event_t {
    esp_mqtt_event_id_t event_id;
    esp_mqtt_client_handle_t client;
    char *data;
    int data_len;
    int total_data_len;
    int current_data_offset;
    char *topic; // first piece of a message only, not NUL-terminated
    int topic_len;
    int msg_id;
    int session_present;
    esp_mqtt_error_codes_t *error_handle;
    bool retain;
    int qos;
    bool dup;
    esp_mqtt_protocol_ver_t protocol_ver;
} esp_mqtt_event_t;

typedef esp_mqtt_event_t *esp_mqtt_event_handle_t;

typedef struct esp_mqtt_client_config_t {
    struct broker_t {
        struct address_t {
            const char *uri; // mqtt[s]://[user[:password]@]host[:port]; overrides the fields below
            const char *hostname;
            esp_mqtt_transport_t transport;
            uint32_t port; // default 1883, 8883 for TLS
        } address;
        struct verification_t {
            const char *certificate; // CA, PEM; not copied
            bool skip_cert_common_name_check;
            const char *common_name;
        } verification;
    } broker;
    struct credentials_t {
        const char *username;
        const char *client_id; // default ESP32_ and the last three bytes of the MAC address
        bool set_null_client_id;
        struct authentication_t {
            const char *password;
            const char *certificate; // PEM; not copied
            const char *key;         // PEM; not copied
        } authentication;
    } credentials;
    struct session_t {
        bool disable_clean_session;
        int keepalive; // s, default 120
        bool disable_keepalive;
        esp_mqtt_protocol_ver_t protocol_ver; // MQTT 3.1.1 only
        int message_retransmit_timeout;       // ms, default 1000
    } session;
    struct network_t {
        int reconnect_timeout_ms; // default 10000
        int timeout_ms;           // default 10000
        bool disable_auto_reconnect;
    } network;
    struct task_t {
        int priority;   // default CONFIG_MQTT_TASK_PRIORITY
        int stack_size; // bytes, default CONFIG_MQTT_TASK_STACK_SIZE
    } task;
    struct buffer_t {
        int size;     // bytes, default CONFIG_MQTT_BUFFER_SIZE
        int out_size; // bytes, default `size`
    } buffer;
    struct outbox_config_t {
        uint64_t limit; // bytes, 0: none
    } outbox;
} esp_mqtt_client_config_t;

typedef struct topic_t {
    const char *filter;
    int qos;
} esp_mqtt_topic_t;

esp_mqtt_client_handle_t esp_mqtt_client_init(const esp_mqtt_client_config_t *config);
esp_err_t esp_mqtt_client_start(esp_mqtt_client_handle_t client);
esp_err_t esp_mqtt_client_reconnect(esp_mqtt_client_handle_t client);
esp_err_t esp_mqtt_client_disconnect(esp_mqtt_client_handle_t client);
// Not from an event handler.
esp_err_t esp_mqtt_client_stop(esp_mqtt_client_handle_t client);
esp_err_t esp_mqtt_client_destroy(esp_mqtt_client_handle_t client);

#ifdef __cplusplus
#define esp_mqtt_client_subscribe esp_mqtt_client_subscribe_single
#else
#define esp_mqtt_client_subscribe(client_handle, topic_type, qos_or_size)                                    \
    _Generic((topic_type),                                                                                             \
        char *: esp_mqtt_client_subscribe_single,                                                                      \
        const char *: esp_mqtt_client_subscribe_single,                                                                \
        esp_mqtt_topic_t *: esp_mqtt_client_subscribe_multiple)(client_handle, topic_type, qos_or_size)
#endif
// Message id, -1 on failure, -2 when the outbox is full.
int esp_mqtt_client_subscribe_single(esp_mqtt_client_handle_t client, const char *topic, int qos);
int esp_mqtt_client_subscribe_multiple(esp_mqtt_client_handle_t client, const esp_mqtt_topic_t *topic_list,
                                       int size);
int esp_mqtt_client_unsubscribe(esp_mqtt_client_handle_t client, const char *topic);

// Writes to the socket in the calling task and may block for the network time-out. Message id (0 at QoS 0),
// -1 on failure (at QoS 0 also when not connected), -2 when the outbox is full. len 0: the length of the
// string.
int esp_mqtt_client_publish(esp_mqtt_client_handle_t client, const char *topic, const char *data, int len,
                            int qos, int retain);
// Stores only; the mqtt task sends one stored message a loop, and a loop takes up to
// CONFIG_MQTT_POLL_READ_TIMEOUT_MS when nothing arrives. QoS 0 is stored only with `store`.
int esp_mqtt_client_enqueue(esp_mqtt_client_handle_t client, const char *topic, const char *data, int len,
                            int qos, int retain, bool store);
int esp_mqtt_client_get_outbox_size(esp_mqtt_client_handle_t client);

esp_err_t esp_mqtt_client_register_event(esp_mqtt_client_handle_t client, esp_mqtt_event_id_t event,
                                         esp_event_handler_t event_handler, void *event_handler_arg);
esp_err_t esp_mqtt_client_unregister_event(esp_mqtt_client_handle_t client, esp_mqtt_event_id_t event,
                                           esp_event_handler_t event_handler);

// The transport of a scheme (MQTT_OVER_..._SCHEME), NULL before the first MQTT_EVENT_BEFORE_CONNECT.
esp_transport_handle_t esp_mqtt_client_get_transport(esp_mqtt_client_handle_t client, char *transport_scheme);

#ifdef __cplusplus
}
#endif
