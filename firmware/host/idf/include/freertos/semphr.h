/* SPDX-License-Identifier: Apache-2.0 */
/* Semaphores and mutexes: queues without items, as in FreeRTOS. */
#pragma once
#include "freertos/queue.h"

typedef QueueHandle_t SemaphoreHandle_t;

#define semGIVE_BLOCK_TIME ((TickType_t)0U)

#define xSemaphoreCreateBinary() xQueueGenericCreate(1, 0, queueQUEUE_TYPE_BINARY_SEMAPHORE)
#define xSemaphoreCreateBinaryStatic(buffer)                                                                 \
    xQueueGenericCreateStatic(1, 0, NULL, (buffer), queueQUEUE_TYPE_BINARY_SEMAPHORE)
#define xSemaphoreCreateCounting(max, initial) xQueueCreateCountingSemaphore((max), (initial))
#define xSemaphoreCreateCountingStatic(max, initial, buffer)                                                 \
    xQueueCreateCountingSemaphoreStatic((max), (initial), (buffer))
#define xSemaphoreCreateMutex() xQueueCreateMutex(queueQUEUE_TYPE_MUTEX)
#define xSemaphoreCreateMutexStatic(buffer) xQueueCreateMutexStatic(queueQUEUE_TYPE_MUTEX, (buffer))
#define xSemaphoreCreateRecursiveMutex() xQueueCreateMutex(queueQUEUE_TYPE_RECURSIVE_MUTEX)
#define xSemaphoreCreateRecursiveMutexStatic(buffer)                                                         \
    xQueueCreateMutexStatic(queueQUEUE_TYPE_RECURSIVE_MUTEX, (buffer))
#define vSemaphoreDelete(semaphore) vQueueDelete(semaphore)

#define xSemaphoreTake(semaphore, ticks) xQueueSemaphoreTake((semaphore), (ticks))
#define xSemaphoreGive(semaphore) xQueueGenericSend((semaphore), NULL, semGIVE_BLOCK_TIME, queueSEND_TO_BACK)
#define xSemaphoreTakeRecursive(mutex, ticks) xQueueTakeMutexRecursive((mutex), (ticks))
#define xSemaphoreGiveRecursive(mutex) xQueueGiveMutexRecursive(mutex)
#define xSemaphoreGiveFromISR(semaphore, woken) xQueueGiveFromISR((semaphore), (woken))
#define xSemaphoreTakeFromISR(semaphore, woken) xQueueReceiveFromISR((semaphore), NULL, (woken))
#define xSemaphoreGetMutexHolder(mutex) xQueueGetMutexHolder(mutex)
#define uxSemaphoreGetCount(semaphore) uxQueueMessagesWaiting(semaphore)
