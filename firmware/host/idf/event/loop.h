/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of an event loop. */
#pragma once
#include <stdbool.h>

#include "esp_event.h"

typedef struct handler {
    esp_event_base_t base; /* ESP_EVENT_ANY_BASE: NULL */
    int32_t id;
    esp_event_handler_t function;
    void *argument;
    bool removed; /* while the loop calls handlers; freed after that */
    struct handler *next;
} handler_t;

typedef struct {
    QueueHandle_t queue;
    SemaphoreHandle_t mutex; /* recursive: held while handlers run */
    TaskHandle_t task;       /* of its own, or NULL */
    TaskHandle_t running;    /* that runs it now */
    handler_t *handlers;     /* in the order of registering */
    int depth;               /* of handlers that are being called */
} loop_t;

typedef struct {
    esp_event_base_t base;
    int32_t id;
    bool has_data;
    bool allocated;
    union {
        void *data;
        uint32_t value; /* of an interrupt */
    };
} post_t;

/* handlers.c: with the loop's mutex. */
void handlers_call(loop_t *loop, post_t *post);
void handlers_free(loop_t *loop);
