/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this component share. */
#pragma once

#include "cost/part.h"
#include "freertos/FreeRTOS.h"
#include "freertos/semphr.h"

#define COST_HOST "127.0.0.1"

enum { COST_BROKER_PORT = 11883, COST_SINK_PORT = 10009, COST_HTTP_PORT = 10080 };

extern const cost_part_t cost_serialise, cost_publish_qos0, cost_publish_qos1, cost_puback_in, cost_tcp_out,
    cost_http_get, cost_task_switch, cost_queue, cost_mutex, cost_nvs_commit, cost_boot, cost_tls_record,
    cost_tls_handshake;

/* Start TCP/IP without a network: 127.0.0.1 can be reached. Also where it has been started, or is up. */
esp_err_t cost_loopback(void);

/* The other end: a task that listens on the loopback and serves one connection. */
typedef struct {
    /* Set these before cost_peer_start(). */
    uint16_t port;
    void (*serve)(int fd, void *context); /* until the connection has ended */
    void *context;

    int listener;
    SemaphoreHandle_t ended;
} cost_peer_t;

/* Returns ESP_OK, or what bench_fail() was told. */
esp_err_t cost_peer_start(cost_peer_t *peer, bench_samples_t *samples);

/* After the other end has closed the connection, or before one was made. Also where it was not started. */
void cost_peer_stop(cost_peer_t *peer);

/* A broker for one client that does no more than acknowledge, and counts what it is sent. */
typedef struct {
    SemaphoreHandle_t published; /* given for each PUBLISH that arrives, before it is answered */
    cost_moment_t answered;      /* right before its PUBACK is sent */
} cost_broker_t;

/* `serve` of a cost_peer_t, with a cost_broker_t. */
void cost_broker_serve(int fd, void *broker);

/* Whether it is given in time. */
bool cost_await(SemaphoreHandle_t semaphore);
