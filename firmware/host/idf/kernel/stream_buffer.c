/* SPDX-License-Identifier: Apache-2.0 */
/* Stream and message buffers. Built, as FreeRTOS builds them, on the waiting task's notification: one that is
 * pending for another reason ends a wait early, and the buffer's clears it. */
#include "freertos/stream_buffer.h"

#include <stdlib.h>
#include <string.h>

#include "freertos/task.h"

/* What a message takes beside its bytes: a chip's size_t, whatever the host's is. */
typedef uint32_t message_length_t;

struct StreamBufferDef_t {
    uint8_t *bytes;
    size_t size; /* all that fits */
    size_t head; /* oldest byte */
    size_t used;
    size_t trigger_bytes;
    bool of_messages;
    bool is_static;
    TaskHandle_t reader; /* that waits */
    TaskHandle_t writer; /* that waits */
    portMUX_TYPE lock;
};

_Static_assert(sizeof(struct StreamBufferDef_t) <= sizeof(StaticStreamBuffer_t),
               "StaticStreamBuffer_t is too small");

static StreamBufferHandle_t fill(StreamBufferHandle_t buffer, uint8_t *bytes, size_t size,
                                 size_t trigger_bytes, BaseType_t of_messages) {
    configASSERT(trigger_bytes <= size);
    memset(buffer, 0, sizeof *buffer);
    buffer->bytes = bytes;
    buffer->size = size;
    buffer->trigger_bytes = trigger_bytes > 0 ? trigger_bytes : 1;
    buffer->of_messages = of_messages != pdFALSE;
    portMUX_INITIALIZE(&buffer->lock);
    return buffer;
}

StreamBufferHandle_t xStreamBufferGenericCreate(size_t xBufferSizeBytes, size_t xTriggerLevelBytes,
                                                BaseType_t xIsMessageBuffer,
                                                StreamBufferCallbackFunction_t pxSendCompletedCallback,
                                                StreamBufferCallbackFunction_t pxReceiveCompletedCallback) {
    configASSERT(pxSendCompletedCallback == NULL && pxReceiveCompletedCallback == NULL);
    configASSERT(xBufferSizeBytes > (xIsMessageBuffer != pdFALSE ? sizeof(message_length_t) : 0));
    StreamBufferHandle_t buffer = malloc(sizeof *buffer + xBufferSizeBytes);
    return buffer == NULL ? NULL
                          : fill(buffer, (uint8_t *)(buffer + 1), xBufferSizeBytes, xTriggerLevelBytes,
                                 xIsMessageBuffer);
}

StreamBufferHandle_t
xStreamBufferGenericCreateStatic(size_t xBufferSizeBytes, size_t xTriggerLevelBytes,
                                 BaseType_t xIsMessageBuffer, uint8_t *const pucStreamBufferStorageArea,
                                 StaticStreamBuffer_t *const pxStaticStreamBuffer,
                                 StreamBufferCallbackFunction_t pxSendCompletedCallback,
                                 StreamBufferCallbackFunction_t pxReceiveCompletedCallback) {
    configASSERT(pxSendCompletedCallback == NULL && pxReceiveCompletedCallback == NULL);
    configASSERT(pucStreamBufferStorageArea != NULL && pxStaticStreamBuffer != NULL);
    configASSERT(xBufferSizeBytes > sizeof(message_length_t));
    /* A buffer of the caller's has room for one byte less, as a chip tells full from empty by it. */
    StreamBufferHandle_t buffer =
        fill((StreamBufferHandle_t)(void *)pxStaticStreamBuffer, pucStreamBufferStorageArea, xBufferSizeBytes,
             xTriggerLevelBytes, xIsMessageBuffer);
    buffer->size = xBufferSizeBytes - 1;
    buffer->is_static = true;
    return buffer;
}

void vStreamBufferDelete(StreamBufferHandle_t xStreamBuffer) {
    if (xStreamBuffer->is_static) {
        memset(xStreamBuffer, 0, sizeof *xStreamBuffer);
    } else {
        free(xStreamBuffer);
    }
}

static size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

static size_t header_bytes(const struct StreamBufferDef_t *buffer) {
    return buffer->of_messages ? sizeof(message_length_t) : 0;
}

static void put(StreamBufferHandle_t buffer, const void *data, size_t bytes) {
    size_t at = (buffer->head + buffer->used) % buffer->size;
    size_t before_the_end = smaller(bytes, buffer->size - at);
    memcpy(buffer->bytes + at, data, before_the_end);
    memcpy(buffer->bytes, (const uint8_t *)data + before_the_end, bytes - before_the_end);
    buffer->used += bytes;
}

static void peek(const struct StreamBufferDef_t *buffer, size_t offset, void *data, size_t bytes) {
    size_t at = (buffer->head + offset) % buffer->size;
    size_t before_the_end = smaller(bytes, buffer->size - at);
    memcpy(data, buffer->bytes + at, before_the_end);
    memcpy((uint8_t *)data + before_the_end, buffer->bytes, bytes - before_the_end);
}

static void drop(StreamBufferHandle_t buffer, size_t bytes) {
    buffer->head = (buffer->head + bytes) % buffer->size;
    buffer->used -= bytes;
}

/* With the lock: wakes the task that waits at one end. */
static void notify(TaskHandle_t *waiter, BaseType_t *woken) {
    if (*waiter != NULL) {
        (void)xTaskNotifyFromISR(*waiter, 0, eNoAction, woken);
        *waiter = NULL;
    }
}

/* With the lock: a message whole or not at all, of a stream as much as fits. */
static size_t write_now(StreamBufferHandle_t buffer, const void *data, size_t bytes, BaseType_t *woken) {
    size_t space = buffer->size - buffer->used;
    size_t written = smaller(bytes, space);
    if (buffer->of_messages) {
        message_length_t length = (message_length_t)bytes;
        written = space < bytes + sizeof length ? 0 : bytes;
        if (written > 0) {
            put(buffer, &length, sizeof length);
        }
    }
    if (written > 0) {
        put(buffer, data, written);
        if (buffer->used >= buffer->trigger_bytes) {
            notify(&buffer->reader, woken);
        }
    }
    return written;
}

static message_length_t next_length(const struct StreamBufferDef_t *buffer) {
    message_length_t length = 0;
    if (buffer->used > sizeof length) {
        peek(buffer, 0, &length, sizeof length);
    }
    return length;
}

/* With the lock: a message that is longer than the reader's buffer stays. */
static size_t read_now(StreamBufferHandle_t buffer, void *data, size_t bytes, BaseType_t *woken) {
    size_t header = header_bytes(buffer);
    size_t read = smaller(bytes, buffer->used);
    if (buffer->of_messages) {
        read = next_length(buffer) <= bytes ? next_length(buffer) : 0;
    }
    if (read > 0) {
        peek(buffer, header, data, read);
        drop(buffer, header + read);
        notify(&buffer->writer, woken);
    }
    return read;
}

/* With the lock, which it gives up for the wait: until notified or for the ticks. */
static void wait_as(StreamBufferHandle_t buffer, TaskHandle_t *waiter, TickType_t ticks) {
    (void)xTaskNotifyStateClear(NULL);
    configASSERT(*waiter == NULL && "a stream buffer has one reader and one writer");
    *waiter = xTaskGetCurrentTaskHandle();
    taskEXIT_CRITICAL(&buffer->lock);
    (void)xTaskNotifyWait(0, 0, NULL, ticks);
    taskENTER_CRITICAL(&buffer->lock);
    *waiter = NULL;
}

static TickType_t ticks_left(TickType_t since, TickType_t ticks) {
    TickType_t passed = xTaskGetTickCount() - since;
    return ticks == portMAX_DELAY ? portMAX_DELAY : passed < ticks ? ticks - passed : 0;
}

size_t xStreamBufferSend(StreamBufferHandle_t xStreamBuffer, const void *pvTxData, size_t xDataLengthBytes,
                         TickType_t xTicksToWait) {
    configASSERT(pvTxData != NULL && xStreamBuffer != NULL);
    StreamBufferHandle_t buffer = xStreamBuffer;
    size_t needed = xDataLengthBytes + header_bytes(buffer);
    bool never_fits = buffer->of_messages && needed > buffer->size;
    TickType_t left = never_fits ? 0 : xTicksToWait;
    TickType_t since = xTaskGetTickCount();
    taskENTER_CRITICAL(&buffer->lock);
    while (left > 0 && buffer->size - buffer->used < smaller(needed, buffer->size)) {
        wait_as(buffer, &buffer->writer, left);
        left = ticks_left(since, xTicksToWait);
    }
    size_t written = write_now(buffer, pvTxData, xDataLengthBytes, NULL);
    taskEXIT_CRITICAL(&buffer->lock);
    return written;
}

size_t xStreamBufferSendFromISR(StreamBufferHandle_t xStreamBuffer, const void *pvTxData,
                                size_t xDataLengthBytes, BaseType_t *const pxHigherPriorityTaskWoken) {
    configASSERT(pvTxData != NULL && xStreamBuffer != NULL);
    taskENTER_CRITICAL_ISR(&xStreamBuffer->lock);
    size_t written = write_now(xStreamBuffer, pvTxData, xDataLengthBytes, pxHigherPriorityTaskWoken);
    taskEXIT_CRITICAL_ISR(&xStreamBuffer->lock);
    return written;
}

/* It waits once: what has come below the trigger level by the end of the wait is taken. */
size_t xStreamBufferReceive(StreamBufferHandle_t xStreamBuffer, void *pvRxData, size_t xBufferLengthBytes,
                            TickType_t xTicksToWait) {
    configASSERT(pvRxData != NULL && xStreamBuffer != NULL);
    taskENTER_CRITICAL(&xStreamBuffer->lock);
    if (xTicksToWait > 0 && xStreamBuffer->used <= header_bytes(xStreamBuffer)) {
        wait_as(xStreamBuffer, &xStreamBuffer->reader, xTicksToWait);
    }
    size_t read = read_now(xStreamBuffer, pvRxData, xBufferLengthBytes, NULL);
    taskEXIT_CRITICAL(&xStreamBuffer->lock);
    return read;
}

size_t xStreamBufferReceiveFromISR(StreamBufferHandle_t xStreamBuffer, void *pvRxData,
                                   size_t xBufferLengthBytes, BaseType_t *const pxHigherPriorityTaskWoken) {
    configASSERT(pvRxData != NULL && xStreamBuffer != NULL);
    taskENTER_CRITICAL_ISR(&xStreamBuffer->lock);
    size_t read = read_now(xStreamBuffer, pvRxData, xBufferLengthBytes, pxHigherPriorityTaskWoken);
    taskEXIT_CRITICAL_ISR(&xStreamBuffer->lock);
    return read;
}

size_t xStreamBufferBytesAvailable(StreamBufferHandle_t xStreamBuffer) {
    taskENTER_CRITICAL(&xStreamBuffer->lock);
    size_t used = xStreamBuffer->used;
    taskEXIT_CRITICAL(&xStreamBuffer->lock);
    return used;
}

size_t xStreamBufferSpacesAvailable(StreamBufferHandle_t xStreamBuffer) {
    return xStreamBuffer->size - xStreamBufferBytesAvailable(xStreamBuffer);
}

BaseType_t xStreamBufferIsEmpty(StreamBufferHandle_t xStreamBuffer) {
    return xStreamBufferBytesAvailable(xStreamBuffer) == 0 ? pdTRUE : pdFALSE;
}

BaseType_t xStreamBufferIsFull(StreamBufferHandle_t xStreamBuffer) {
    return xStreamBufferSpacesAvailable(xStreamBuffer) <= header_bytes(xStreamBuffer) ? pdTRUE : pdFALSE;
}

BaseType_t xStreamBufferReset(StreamBufferHandle_t xStreamBuffer) {
    taskENTER_CRITICAL(&xStreamBuffer->lock);
    bool nobody_waits = xStreamBuffer->reader == NULL && xStreamBuffer->writer == NULL;
    if (nobody_waits) {
        xStreamBuffer->head = 0;
        xStreamBuffer->used = 0;
    }
    taskEXIT_CRITICAL(&xStreamBuffer->lock);
    return nobody_waits ? pdPASS : pdFAIL;
}

BaseType_t xStreamBufferSetTriggerLevel(StreamBufferHandle_t xStreamBuffer, size_t xTriggerLevel) {
    if (xTriggerLevel > xStreamBuffer->size) {
        return pdFALSE;
    }
    taskENTER_CRITICAL(&xStreamBuffer->lock);
    xStreamBuffer->trigger_bytes = xTriggerLevel > 0 ? xTriggerLevel : 1;
    taskEXIT_CRITICAL(&xStreamBuffer->lock);
    return pdTRUE;
}

size_t xStreamBufferNextMessageLengthBytes(StreamBufferHandle_t xStreamBuffer) {
    taskENTER_CRITICAL(&xStreamBuffer->lock);
    size_t length = xStreamBuffer->of_messages ? next_length(xStreamBuffer) : 0;
    taskEXIT_CRITICAL(&xStreamBuffer->lock);
    return length;
}
