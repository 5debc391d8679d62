/* SPDX-License-Identifier: Apache-2.0 */
/* A bench's connection to the MQTT broker that the board was told, or to one of its own. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "agent/bench.h"
#include "freertos/FreeRTOS.h"
#include "freertos/event_groups.h"
#include "mqtt_client.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    MQTT_LINK_TCP,
    MQTT_LINK_TLS,
    MQTT_LINK_MTLS,
    MQTT_LINK_PASSWORD, /* plain TCP, with user name and password */
} mqtt_link_transport_t;

/* Choices of a parameter `transport`, in the order of mqtt_link_transport_t. */
extern const char *const mqtt_link_transports[];

enum { MQTT_LINK_TOPIC_SIZE = 48 };

/* How esp-mqtt is set up. */
typedef struct {
    uint32_t outbox_limit_bytes; /* 0: none */
    int buffer_bytes;            /* the in and the out buffer each; 0: esp-mqtt's default */
    int network_timeout_ms;      /* 0: esp-mqtt's default, 10 s */
    int reconnect_ms;            /* from the end of a connection, or of an attempt, to the next attempt */
    int keepalive_s;             /* 0: esp-mqtt's default, 120 s */
    bool keep_session;           /* CONNECT without clean session */
} mqtt_link_settings_t;

/* What a link without settings of its own has. */
extern const mqtt_link_settings_t mqtt_link_defaults;

typedef struct {
    /* Set these before mqtt_link_open(). */
    const bench_run_t *run;
    bench_samples_t *samples;
    mqtt_link_transport_t transport;
    const mqtt_link_settings_t *settings; /* lasts as long as the link; NULL: mqtt_link_defaults */
    const char *host;                     /* in place of the provisioned broker's, plain TCP; or NULL */
    uint16_t port;                        /* of `host` */
    bool nodelay;                         /* TCP_NODELAY */
    const char *subscribe;                /* topic to subscribe to after each connect, or NULL */
    const char *subscribe_also;           /* and another one, or NULL */
    int subscribe_qos;
    /* Every event, in the mqtt task, under esp-mqtt's lock; or NULL. */
    void (*on_event)(void *context, const esp_mqtt_event_t *event);
    void *context;

    /* Filled in. */
    esp_mqtt_client_handle_t client;
    EventGroupHandle_t bits;
    esp_mqtt_error_codes_t error; /* the last one */
    int subscribed;               /* SUBACKs since the last connect; the mqtt task's */
    atomic_uint connects;
    atomic_int nodelay_read_back; /* what the socket says: 0, 1, or -1 where it does not */
} mqtt_link_t;

/* Connect, and subscribe where asked to; come back when that is done or cannot be.
 *
 * Returns ESP_OK, or what bench_fail() was told: the broker or a certificate is not provisioned
 * (configuration), the broker is not there, does not answer, refuses or has a wrong certificate (rig), the
 * board is out of memory or speaks a wrong protocol (firmware).
 */
esp_err_t mqtt_link_open(mqtt_link_t *link);

/* Whether it was opened or not. No event comes afterwards. */
void mqtt_link_close(mqtt_link_t *link);

/* Add to the end line what the connection was like: nodelay, connects, the mqtt task's core and stack, TLS.
 */
void mqtt_link_environment(const mqtt_link_t *link);

/* The socket of the connection, or -1. In an event's handler, which is before the client closes it. */
int mqtt_link_socket(const mqtt_link_t *link);

/* hil/<MAC address>/<leaf> */
void mqtt_link_topic(char topic[MQTT_LINK_TOPIC_SIZE], const char *leaf);

#ifdef __cplusplus
}
#endif
