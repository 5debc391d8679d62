/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "freertos/FreeRTOS.h"
#include "freertos/task.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct QueueDefinition *QueueHandle_t;

#define queueSEND_TO_BACK ((BaseType_t)0)
#define queueSEND_TO_FRONT ((BaseType_t)1)
#define queueOVERWRITE ((BaseType_t)2)

#define queueQUEUE_TYPE_BASE ((uint8_t)0U)
#define queueQUEUE_TYPE_MUTEX ((uint8_t)1U)
#define queueQUEUE_TYPE_COUNTING_SEMAPHORE ((uint8_t)2U)
#define queueQUEUE_TYPE_BINARY_SEMAPHORE ((uint8_t)3U)
#define queueQUEUE_TYPE_RECURSIVE_MUTEX ((uint8_t)4U)

QueueHandle_t xQueueGenericCreate(const UBaseType_t uxQueueLength, const UBaseType_t uxItemSize,
                                  const uint8_t ucQueueType);
QueueHandle_t xQueueGenericCreateStatic(const UBaseType_t uxQueueLength, const UBaseType_t uxItemSize,
                                        uint8_t *pucQueueStorage, StaticQueue_t *pxStaticQueue,
                                        const uint8_t ucQueueType);
QueueHandle_t xQueueCreateMutex(const uint8_t ucQueueType);
QueueHandle_t xQueueCreateMutexStatic(const uint8_t ucQueueType, StaticQueue_t *pxStaticQueue);
QueueHandle_t xQueueCreateCountingSemaphore(const UBaseType_t uxMaxCount, const UBaseType_t uxInitialCount);
QueueHandle_t xQueueCreateCountingSemaphoreStatic(const UBaseType_t uxMaxCount,
                                                  const UBaseType_t uxInitialCount,
                                                  StaticQueue_t *pxStaticQueue);
void vQueueDelete(QueueHandle_t xQueue);

BaseType_t xQueueGenericSend(QueueHandle_t xQueue, const void *const pvItemToQueue, TickType_t xTicksToWait,
                             const BaseType_t xCopyPosition);
BaseType_t xQueueGenericSendFromISR(QueueHandle_t xQueue, const void *const pvItemToQueue,
                                    BaseType_t *const pxHigherPriorityTaskWoken,
                                    const BaseType_t xCopyPosition);
BaseType_t xQueueReceive(QueueHandle_t xQueue, void *const pvBuffer, TickType_t xTicksToWait);
BaseType_t xQueueReceiveFromISR(QueueHandle_t xQueue, void *const pvBuffer,
                                BaseType_t *const pxHigherPriorityTaskWoken);
BaseType_t xQueuePeek(QueueHandle_t xQueue, void *const pvBuffer, TickType_t xTicksToWait);
BaseType_t xQueueSemaphoreTake(QueueHandle_t xQueue, TickType_t xTicksToWait);
BaseType_t xQueueGiveFromISR(QueueHandle_t xQueue, BaseType_t *const pxHigherPriorityTaskWoken);
BaseType_t xQueueTakeMutexRecursive(QueueHandle_t xMutex, TickType_t xTicksToWait);
BaseType_t xQueueGiveMutexRecursive(QueueHandle_t xMutex);
TaskHandle_t xQueueGetMutexHolder(QueueHandle_t xSemaphore);
UBaseType_t uxQueueMessagesWaiting(const QueueHandle_t xQueue);
UBaseType_t uxQueueMessagesWaitingFromISR(const QueueHandle_t xQueue);
UBaseType_t uxQueueSpacesAvailable(const QueueHandle_t xQueue);
BaseType_t xQueueGenericReset(QueueHandle_t xQueue, BaseType_t xNewQueue);

#define xQueueCreate(length, size) xQueueGenericCreate((length), (size), queueQUEUE_TYPE_BASE)
#define xQueueCreateStatic(length, size, storage, buffer)                                                    \
    xQueueGenericCreateStatic((length), (size), (storage), (buffer), queueQUEUE_TYPE_BASE)
#define xQueueSend(queue, item, ticks) xQueueGenericSend((queue), (item), (ticks), queueSEND_TO_BACK)
#define xQueueSendToBack(queue, item, ticks) xQueueGenericSend((queue), (item), (ticks), queueSEND_TO_BACK)
#define xQueueSendToFront(queue, item, ticks) xQueueGenericSend((queue), (item), (ticks), queueSEND_TO_FRONT)
#define xQueueOverwrite(queue, item) xQueueGenericSend((queue), (item), 0, queueOVERWRITE)
#define xQueueSendFromISR(queue, item, woken)                                                                \
    xQueueGenericSendFromISR((queue), (item), (woken), queueSEND_TO_BACK)
#define xQueueSendToBackFromISR(queue, item, woken)                                                          \
    xQueueGenericSendFromISR((queue), (item), (woken), queueSEND_TO_BACK)
#define xQueueSendToFrontFromISR(queue, item, woken)                                                         \
    xQueueGenericSendFromISR((queue), (item), (woken), queueSEND_TO_FRONT)
#define xQueueOverwriteFromISR(queue, item, woken)                                                           \
    xQueueGenericSendFromISR((queue), (item), (woken), queueOVERWRITE)
#define xQueueReset(queue) xQueueGenericReset((queue), pdFALSE)

#ifdef __cplusplus
}
#endif
