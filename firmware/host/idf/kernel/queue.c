/* SPDX-License-Identifier: Apache-2.0 */
#include "queue.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(struct QueueDefinition) <= sizeof(StaticQueue_t), "StaticQueue_t is too small");

trace_object_kind_t queue_trace_kind(const struct QueueDefinition *queue) {
    static const trace_object_kind_t kinds[] = {
        [queueQUEUE_TYPE_BASE] = TRACE_QUEUE,
        [queueQUEUE_TYPE_MUTEX] = TRACE_MUTEX,
        [queueQUEUE_TYPE_COUNTING_SEMAPHORE] = TRACE_COUNTING,
        [queueQUEUE_TYPE_BINARY_SEMAPHORE] = TRACE_BINARY,
        [queueQUEUE_TYPE_RECURSIVE_MUTEX] = TRACE_RECURSIVE,
    };
    return kinds[queue->type];
}

static QueueHandle_t fill(QueueHandle_t queue, UBaseType_t length, UBaseType_t item_bytes, uint8_t *items,
                          uint8_t type) {
    memset(queue, 0, sizeof *queue);
    queue->length = length;
    queue->item_bytes = item_bytes;
    queue->items = items;
    queue->type = type;
    traceQUEUE_CREATE(queue);
    return queue;
}

QueueHandle_t xQueueGenericCreate(const UBaseType_t uxQueueLength, const UBaseType_t uxItemSize,
                                  const uint8_t ucQueueType) {
    configASSERT(uxQueueLength > 0);
    size_t bytes = sizeof(struct QueueDefinition) + (size_t)uxQueueLength * uxItemSize;
    QueueHandle_t queue = malloc(bytes);
    return queue == NULL ? NULL : fill(queue, uxQueueLength, uxItemSize, (uint8_t *)(queue + 1), ucQueueType);
}

QueueHandle_t xQueueGenericCreateStatic(const UBaseType_t uxQueueLength, const UBaseType_t uxItemSize,
                                        uint8_t *pucQueueStorage, StaticQueue_t *pxStaticQueue,
                                        const uint8_t ucQueueType) {
    configASSERT(uxQueueLength > 0 && pxStaticQueue != NULL &&
                 (uxItemSize == 0) == (pucQueueStorage == NULL));
    QueueHandle_t queue = (QueueHandle_t)(void *)pxStaticQueue;
    fill(queue, uxQueueLength, uxItemSize, pucQueueStorage, ucQueueType);
    queue->is_static = true;
    return queue;
}

QueueHandle_t xQueueCreateCountingSemaphore(const UBaseType_t uxMaxCount, const UBaseType_t uxInitialCount) {
    configASSERT(uxInitialCount <= uxMaxCount);
    QueueHandle_t queue = xQueueGenericCreate(uxMaxCount, 0, queueQUEUE_TYPE_COUNTING_SEMAPHORE);
    if (queue != NULL) {
        queue->count = uxInitialCount;
    }
    return queue;
}

QueueHandle_t xQueueCreateCountingSemaphoreStatic(const UBaseType_t uxMaxCount,
                                                  const UBaseType_t uxInitialCount,
                                                  StaticQueue_t *pxStaticQueue) {
    configASSERT(uxInitialCount <= uxMaxCount);
    QueueHandle_t queue =
        xQueueGenericCreateStatic(uxMaxCount, 0, NULL, pxStaticQueue, queueQUEUE_TYPE_COUNTING_SEMAPHORE);
    queue->count = uxInitialCount;
    return queue;
}

void vQueueDelete(QueueHandle_t xQueue) {
    if (xQueue != NULL && !xQueue->is_static) {
        free(xQueue);
    }
}

static uint8_t *slot(const struct QueueDefinition *queue, UBaseType_t index) {
    return queue->items + (size_t)((queue->head + index) % queue->length) * queue->item_bytes;
}

static void put_item(QueueHandle_t queue, const void *item, BaseType_t position) {
    bool replace = position == queueOVERWRITE && queue->count == queue->length;
    UBaseType_t index = replace ? 0 : queue->count;
    if (position == queueSEND_TO_FRONT) {
        queue->head = (queue->head + queue->length - 1) % queue->length;
        index = 0;
    }
    if (queue->item_bytes > 0) {
        memcpy(slot(queue, index), item, queue->item_bytes);
    }
    queue->count += replace ? 0 : 1;
}

static void copy_oldest(const struct QueueDefinition *queue, void *buffer) {
    if (queue->item_bytes > 0) {
        memcpy(buffer, slot(queue, 0), queue->item_bytes);
    }
}

static void drop_oldest(QueueHandle_t queue) {
    queue->head = (queue->head + 1) % queue->length;
    queue->count--;
}

/* In the kernel. False when the queue is still full at the deadline. */
static bool wait_for_space(QueueHandle_t queue, task_t *self, TickType_t ticks, int64_t deadline_us) {
    while (queue->count == queue->length) {
        if (ticks > 0) {
            traceBLOCKING_ON_QUEUE_SEND(queue);
        }
        bool in_time = ticks > 0 && kernel_block(self, &queue->senders, deadline_us);
        if (!in_time && queue->count == queue->length) {
            return false;
        }
    }
    return true;
}

BaseType_t xQueueGenericSend(QueueHandle_t xQueue, const void *const pvItemToQueue, TickType_t xTicksToWait,
                             const BaseType_t xCopyPosition) {
    configASSERT(xCopyPosition != queueOVERWRITE || xQueue->length == 1);
    task_t *self = kernel_enter();
    int64_t deadline_us = ticks_deadline_us(xTicksToWait);
    if (xCopyPosition != queueOVERWRITE && !wait_for_space(xQueue, self, xTicksToWait, deadline_us)) {
        kernel_leave(self);
        return errQUEUE_FULL;
    }
    traceQUEUE_SEND(xQueue);
    if (queue_is_mutex(xQueue)) {
        mutex_given(xQueue, self);
    }
    put_item(xQueue, pvItemToQueue, xCopyPosition);
    kernel_wake_first(&xQueue->receivers);
    kernel_leave(self);
    return pdPASS;
}

/* In the kernel. False when the queue is still empty at the deadline. */
static bool wait_for_item(QueueHandle_t queue, task_t *self, TickType_t ticks) {
    int64_t deadline_us = ticks_deadline_us(ticks);
    bool mutex = queue_is_mutex(queue);
    while (queue->count == 0) {
        if (ticks > 0) {
            traceBLOCKING_ON_QUEUE_RECEIVE(queue);
        }
        if (mutex && ticks > 0) {
            mutex_lend_priority(queue, self);
        }
        bool in_time = ticks > 0 && kernel_block(self, &queue->receivers, deadline_us);
        if (!in_time && queue->count == 0) {
            if (mutex && ticks > 0) {
                mutex_unlend_after_timeout(queue);
            }
            return false;
        }
    }
    return true;
}

static BaseType_t receive(QueueHandle_t queue, void *buffer, TickType_t ticks, bool keep) {
    task_t *self = kernel_enter();
    bool received = wait_for_item(queue, self, ticks);
    if (received) {
        copy_oldest(queue, buffer);
        if (keep) {
            kernel_wake_first(&queue->receivers); /* the item is still there for the next one */
        } else {
            traceQUEUE_RECEIVE(queue);
            drop_oldest(queue);
            kernel_wake_first(&queue->senders);
        }
    }
    kernel_leave(self);
    return received ? pdPASS : errQUEUE_EMPTY;
}

BaseType_t xQueueReceive(QueueHandle_t xQueue, void *const pvBuffer, TickType_t xTicksToWait) {
    return receive(xQueue, pvBuffer, xTicksToWait, false);
}

BaseType_t xQueuePeek(QueueHandle_t xQueue, void *const pvBuffer, TickType_t xTicksToWait) {
    return receive(xQueue, pvBuffer, xTicksToWait, true);
}

BaseType_t xQueueSemaphoreTake(QueueHandle_t xQueue, TickType_t xTicksToWait) {
    configASSERT(xQueue->item_bytes == 0);
    task_t *self = kernel_enter();
    bool taken = wait_for_item(xQueue, self, xTicksToWait);
    if (taken) {
        traceQUEUE_SEMAPHORE_RECEIVE(xQueue);
        drop_oldest(xQueue);
        if (queue_is_mutex(xQueue)) {
            mutex_taken(xQueue, self);
        }
    }
    kernel_leave(self);
    return taken ? pdPASS : errQUEUE_EMPTY;
}

/* In an interrupt: the plain calls without waiting. */
BaseType_t xQueueGenericSendFromISR(QueueHandle_t xQueue, const void *const pvItemToQueue,
                                    BaseType_t *const pxHigherPriorityTaskWoken,
                                    const BaseType_t xCopyPosition) {
    BaseType_t sent = xQueueGenericSend(xQueue, pvItemToQueue, 0, xCopyPosition);
    kernel_tell_woken(pxHigherPriorityTaskWoken);
    return sent;
}

BaseType_t xQueueReceiveFromISR(QueueHandle_t xQueue, void *const pvBuffer,
                                BaseType_t *const pxHigherPriorityTaskWoken) {
    BaseType_t received = receive(xQueue, pvBuffer, 0, false);
    kernel_tell_woken(pxHigherPriorityTaskWoken);
    return received;
}

BaseType_t xQueueGiveFromISR(QueueHandle_t xQueue, BaseType_t *const pxHigherPriorityTaskWoken) {
    return xQueueGenericSendFromISR(xQueue, NULL, pxHigherPriorityTaskWoken, queueSEND_TO_BACK);
}

UBaseType_t uxQueueMessagesWaiting(const QueueHandle_t xQueue) {
    task_t *self = kernel_enter();
    UBaseType_t count = xQueue->count;
    kernel_leave(self);
    return count;
}

UBaseType_t uxQueueMessagesWaitingFromISR(const QueueHandle_t xQueue) {
    return uxQueueMessagesWaiting(xQueue);
}

UBaseType_t uxQueueSpacesAvailable(const QueueHandle_t xQueue) {
    return xQueue->length - uxQueueMessagesWaiting(xQueue);
}

BaseType_t xQueueGenericReset(QueueHandle_t xQueue, BaseType_t xNewQueue) {
    (void)xNewQueue;
    task_t *self = kernel_enter();
    xQueue->count = 0;
    xQueue->head = 0;
    kernel_wake_first(&xQueue->senders);
    kernel_leave(self);
    return pdPASS;
}
