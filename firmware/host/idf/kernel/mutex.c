/* SPDX-License-Identifier: Apache-2.0 */
/* Mutexes: a queue of one without items, with an owner that inherits its waiters' priority by FreeRTOS's own
 * simple rules: lent when a waiter blocks, taken back when the owner holds no mutex any more. */
#include "queue.h"

bool queue_is_mutex(const struct QueueDefinition *queue) {
    return queue->type == queueQUEUE_TYPE_MUTEX || queue->type == queueQUEUE_TYPE_RECURSIVE_MUTEX;
}

void mutex_lend_priority(struct QueueDefinition *mutex, const task_t *waiter) {
    if (mutex->holder != NULL && mutex->holder->priority < waiter->priority) {
        task_set_priority(mutex->holder, waiter->priority);
        traceTASK_PRIORITY_INHERIT(mutex->holder, waiter->priority);
    }
}

static void disinherit(task_t *task, UBaseType_t priority) {
    if (task->priority != priority) {
        traceTASK_PRIORITY_DISINHERIT(task, priority);
        task_set_priority(task, priority);
    }
}

void mutex_unlend_after_timeout(struct QueueDefinition *mutex) {
    task_t *holder = mutex->holder;
    if (holder == NULL || holder->mutexes_held != 1) {
        return;
    }
    UBaseType_t priority = holder->base_priority;
    if (mutex->receivers.head != NULL && mutex->receivers.head->priority > priority) {
        priority = mutex->receivers.head->priority;
    }
    disinherit(holder, priority);
}

void mutex_taken(struct QueueDefinition *mutex, task_t *self) {
    mutex->holder = self;
    self->mutexes_held++;
}

void mutex_given(struct QueueDefinition *mutex, task_t *self) {
    configASSERT(mutex->holder == self); /* only the owner may give a mutex */
    mutex->holder = NULL;
    if (--self->mutexes_held == 0) {
        disinherit(self, self->base_priority);
    }
}

QueueHandle_t xQueueCreateMutexStatic(const uint8_t ucQueueType, StaticQueue_t *pxStaticQueue) {
    QueueHandle_t mutex = xQueueGenericCreateStatic(1, 0, NULL, pxStaticQueue, ucQueueType);
    if (mutex != NULL) {
        mutex->count = 1;
    }
    return mutex;
}

QueueHandle_t xQueueCreateMutex(const uint8_t ucQueueType) {
    QueueHandle_t mutex = xQueueGenericCreate(1, 0, ucQueueType);
    if (mutex != NULL) {
        mutex->count = 1;
    }
    return mutex;
}

TaskHandle_t xQueueGetMutexHolder(QueueHandle_t xSemaphore) {
    task_t *self = kernel_enter();
    task_t *holder = xSemaphore->holder;
    kernel_leave(self);
    return holder;
}

BaseType_t xQueueTakeMutexRecursive(QueueHandle_t xMutex, TickType_t xTicksToWait) {
    traceTAKE_MUTEX_RECURSIVE(xMutex);
    bool taken = xQueueGetMutexHolder(xMutex) == task_self() || xQueueSemaphoreTake(xMutex, xTicksToWait);
    if (taken) {
        xMutex->recursion++;
    }
    return taken ? pdPASS : pdFAIL;
}

BaseType_t xQueueGiveMutexRecursive(QueueHandle_t xMutex) {
    if (xQueueGetMutexHolder(xMutex) != task_self()) {
        return pdFAIL;
    }
    traceGIVE_MUTEX_RECURSIVE(xMutex);
    if (--xMutex->recursion == 0) {
        (void)xQueueGenericSend(xMutex, NULL, 0, queueSEND_TO_BACK);
    }
    return pdPASS;
}
