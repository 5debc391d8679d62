/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of a queue, semaphore or mutex. */
#pragma once
#include "freertos/queue.h"
#include "kernel.h"

struct QueueDefinition {
    wait_list_t receivers;
    wait_list_t senders;
    UBaseType_t length;
    UBaseType_t item_bytes;
    UBaseType_t count;
    UBaseType_t head; /* oldest item */
    uint8_t type;
    bool is_static;
    uint8_t *items;
    task_t *holder; /* mutexes */
    UBaseType_t recursion;
};

/* queue.c */
trace_object_kind_t queue_trace_kind(const struct QueueDefinition *queue);

/* mutex.c */
bool queue_is_mutex(const struct QueueDefinition *queue);
void mutex_lend_priority(struct QueueDefinition *mutex, const task_t *waiter);
void mutex_unlend_after_timeout(struct QueueDefinition *mutex);
void mutex_taken(struct QueueDefinition *mutex, task_t *self);
void mutex_given(struct QueueDefinition *mutex, task_t *self);
