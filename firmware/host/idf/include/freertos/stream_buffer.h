/* SPDX-License-Identifier: Apache-2.0 */
/* A stream of bytes from one writer to one reader. Waiting uses the task's notification, as on a chip. */
#pragma once
#include "freertos/FreeRTOS.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct StreamBufferDef_t *StreamBufferHandle_t;
typedef void (*StreamBufferCallbackFunction_t)(StreamBufferHandle_t xStreamBuffer, BaseType_t xIsInsideISR,
                                               BaseType_t *const pxHigherPriorityTaskWoken);

/* Completion callbacks are not configured on a chip either (CONFIG_FREERTOS_USE_SB_COMPLETED_CALLBACK): NULL.
 */
StreamBufferHandle_t xStreamBufferGenericCreate(size_t xBufferSizeBytes, size_t xTriggerLevelBytes,
                                                BaseType_t xIsMessageBuffer,
                                                StreamBufferCallbackFunction_t pxSendCompletedCallback,
                                                StreamBufferCallbackFunction_t pxReceiveCompletedCallback);
StreamBufferHandle_t
xStreamBufferGenericCreateStatic(size_t xBufferSizeBytes, size_t xTriggerLevelBytes,
                                 BaseType_t xIsMessageBuffer, uint8_t *const pucStreamBufferStorageArea,
                                 StaticStreamBuffer_t *const pxStaticStreamBuffer,
                                 StreamBufferCallbackFunction_t pxSendCompletedCallback,
                                 StreamBufferCallbackFunction_t pxReceiveCompletedCallback);
void vStreamBufferDelete(StreamBufferHandle_t xStreamBuffer);
size_t xStreamBufferSend(StreamBufferHandle_t xStreamBuffer, const void *pvTxData, size_t xDataLengthBytes,
                         TickType_t xTicksToWait);
size_t xStreamBufferSendFromISR(StreamBufferHandle_t xStreamBuffer, const void *pvTxData,
                                size_t xDataLengthBytes, BaseType_t *const pxHigherPriorityTaskWoken);
size_t xStreamBufferReceive(StreamBufferHandle_t xStreamBuffer, void *pvRxData, size_t xBufferLengthBytes,
                            TickType_t xTicksToWait);
size_t xStreamBufferReceiveFromISR(StreamBufferHandle_t xStreamBuffer, void *pvRxData,
                                   size_t xBufferLengthBytes, BaseType_t *const pxHigherPriorityTaskWoken);
BaseType_t xStreamBufferIsFull(StreamBufferHandle_t xStreamBuffer);
BaseType_t xStreamBufferIsEmpty(StreamBufferHandle_t xStreamBuffer);
BaseType_t xStreamBufferReset(StreamBufferHandle_t xStreamBuffer);
size_t xStreamBufferSpacesAvailable(StreamBufferHandle_t xStreamBuffer);
size_t xStreamBufferBytesAvailable(StreamBufferHandle_t xStreamBuffer);
BaseType_t xStreamBufferSetTriggerLevel(StreamBufferHandle_t xStreamBuffer, size_t xTriggerLevel);
size_t xStreamBufferNextMessageLengthBytes(StreamBufferHandle_t xStreamBuffer);

#define xStreamBufferCreate(bytes, trigger)                                                                  \
    xStreamBufferGenericCreate((bytes), (trigger), pdFALSE, NULL, NULL)
#define xStreamBufferCreateStatic(bytes, trigger, storage, buffer)                                           \
    xStreamBufferGenericCreateStatic((bytes), (trigger), pdFALSE, (storage), (buffer), NULL, NULL)

#ifdef __cplusplus
}
#endif
