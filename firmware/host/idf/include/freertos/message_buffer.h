/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of any length from one writer to one reader; each takes 4 bytes more in the buffer. */
#pragma once
#include "freertos/stream_buffer.h"

typedef StreamBufferHandle_t MessageBufferHandle_t;

#define xMessageBufferCreate(bytes) xStreamBufferGenericCreate((bytes), (size_t)0, pdTRUE, NULL, NULL)
#define xMessageBufferCreateStatic(bytes, storage, buffer)                                                   \
    xStreamBufferGenericCreateStatic((bytes), 0, pdTRUE, (storage), (buffer), NULL, NULL)
#define xMessageBufferSend(buffer, data, bytes, ticks) xStreamBufferSend((buffer), (data), (bytes), (ticks))
#define xMessageBufferSendFromISR(buffer, data, bytes, woken)                                                \
    xStreamBufferSendFromISR((buffer), (data), (bytes), (woken))
#define xMessageBufferReceive(buffer, data, bytes, ticks)                                                    \
    xStreamBufferReceive((buffer), (data), (bytes), (ticks))
#define xMessageBufferReceiveFromISR(buffer, data, bytes, woken)                                             \
    xStreamBufferReceiveFromISR((buffer), (data), (bytes), (woken))
#define vMessageBufferDelete(buffer) vStreamBufferDelete(buffer)
#define xMessageBufferIsFull(buffer) xStreamBufferIsFull(buffer)
#define xMessageBufferIsEmpty(buffer) xStreamBufferIsEmpty(buffer)
#define xMessageBufferReset(buffer) xStreamBufferReset(buffer)
#define xMessageBufferSpaceAvailable(buffer) xStreamBufferSpacesAvailable(buffer)
#define xMessageBufferSpacesAvailable(buffer) xStreamBufferSpacesAvailable(buffer)
#define xMessageBufferNextLengthBytes(buffer) xStreamBufferNextMessageLengthBytes(buffer)
