/* SPDX-License-Identifier: Apache-2.0 */
/* Stream and message buffers: bytes in order, messages whole, waiting by trigger level and for space. */
#include "freertos/message_buffer.h"
#include "freertos/stream_buffer.h"

#include "idf_check.h"

static StreamBufferHandle_t s_buffer;
static SemaphoreHandle_t s_done;
static size_t s_received;
static char s_text[64];

/* Bytes come out as they went in, also over the end of the ring; what does not fit is left out. */
static void test_stream_wraps(void) {
    StreamBufferHandle_t buffer = xStreamBufferCreate(8, 1);
    char out[9] = "";
    for (int round = 0; round < 5; round++) {
        CHECK_EQUAL(xStreamBufferSend(buffer, "abcde", 5, 0), 5);
        CHECK_EQUAL(xStreamBufferSpacesAvailable(buffer), 3);
        CHECK_EQUAL(xStreamBufferReceive(buffer, out, sizeof out, 0), 5);
        CHECK(memcmp(out, "abcde", 5) == 0);
    }
    CHECK_EQUAL(xStreamBufferSend(buffer, "0123456789", 10, 0), 8);
    CHECK(xStreamBufferIsFull(buffer) && !xStreamBufferIsEmpty(buffer));
    CHECK_EQUAL(xStreamBufferReceive(buffer, out, 3, 0), 3);
    CHECK_EQUAL(xStreamBufferBytesAvailable(buffer), 5);
    CHECK_EQUAL(xStreamBufferReset(buffer), pdPASS);
    CHECK(xStreamBufferIsEmpty(buffer));
    vStreamBufferDelete(buffer);
}

static void read_once(void *ticks) {
    s_received = xStreamBufferReceive(s_buffer, s_text, sizeof s_text, (TickType_t)(uintptr_t)ticks);
    xSemaphoreGive(s_done);
    vTaskDelete(NULL);
}

/* A reader wakes at the trigger level, not before; at the end of its wait it takes what there is. */
static void test_trigger_level(void) {
    s_buffer = xStreamBufferCreate(16, 4);
    TaskHandle_t reader = spawn(read_once, (void *)(uintptr_t)portMAX_DELAY, 12, 1);
    CHECK_SOON(eTaskGetState(reader) == eBlocked);
    CHECK_EQUAL(xStreamBufferSend(s_buffer, "abc", 3, 0), 3);
    CHECK(!xSemaphoreTake(s_done, 5));
    CHECK_EQUAL(xStreamBufferSend(s_buffer, "d", 1, 0), 1);
    CHECK(xSemaphoreTake(s_done, portMAX_DELAY));
    CHECK_EQUAL(s_received, 4);
    reader = spawn(read_once, (void *)(uintptr_t)20, 12, 1);
    CHECK_SOON(eTaskGetState(reader) == eBlocked);
    CHECK_EQUAL(xStreamBufferSend(s_buffer, "ef", 2, 0), 2);
    CHECK(xSemaphoreTake(s_done, portMAX_DELAY));
    CHECK_EQUAL(s_received, 2);
    CHECK_EQUAL(xStreamBufferSetTriggerLevel(s_buffer, 17), pdFALSE);
    CHECK_EQUAL(xStreamBufferReset(s_buffer), pdPASS);
    vStreamBufferDelete(s_buffer);
}

static void drain(void *argument) {
    (void)argument;
    char out[6];
    vTaskDelay(2);
    CHECK_EQUAL(xStreamBufferReceive(s_buffer, out, sizeof out, 0), 6);
    xSemaphoreGive(s_done);
    vTaskDelete(NULL);
}

/* A writer waits until all of it fits, and gives up with what does when its ticks have passed. */
static void test_waits_for_space(void) {
    s_buffer = xStreamBufferCreate(8, 1);
    CHECK_EQUAL(xStreamBufferSend(s_buffer, "123456", 6, 0), 6);
    CHECK_EQUAL(xStreamBufferSend(s_buffer, "abcd", 4, 3), 2);
    spawn(drain, NULL, 5, 1);
    CHECK_EQUAL(xStreamBufferSend(s_buffer, "xyz", 3, portMAX_DELAY), 3);
    CHECK(xSemaphoreTake(s_done, portMAX_DELAY));
    CHECK_EQUAL(xStreamBufferReceive(s_buffer, s_text, sizeof s_text, 0), 5);
    CHECK(memcmp(s_text, "abxyz", 5) == 0);
    vStreamBufferDelete(s_buffer);
}

/* A message comes whole or stays: each takes four bytes more, too small a buffer reads nothing. */
static void test_messages(void) {
    static StaticStreamBuffer_t memory;
    static uint8_t storage[24];
    MessageBufferHandle_t buffer = xMessageBufferCreateStatic(sizeof storage, storage, &memory);
    char out[16];
    CHECK_EQUAL(xMessageBufferSpacesAvailable(buffer), sizeof storage - 1);
    CHECK_EQUAL(xMessageBufferSend(buffer, "hello", 5, 0), 5);
    CHECK_EQUAL(xMessageBufferSpacesAvailable(buffer), sizeof storage - 1 - 5 - 4);
    CHECK_EQUAL(xMessageBufferSend(buffer, "0123456789ab", 12, 0), 0);
    CHECK_EQUAL(xMessageBufferSend(buffer, "world!", 6, 0), 6);
    CHECK(xMessageBufferIsFull(buffer));
    CHECK_EQUAL(xMessageBufferNextLengthBytes(buffer), 5);
    CHECK_EQUAL(xMessageBufferReceive(buffer, out, 4, 0), 0);
    CHECK_EQUAL(xMessageBufferReceive(buffer, out, sizeof out, 0), 5);
    CHECK(memcmp(out, "hello", 5) == 0);
    CHECK_EQUAL(xMessageBufferReceive(buffer, out, sizeof out, 0), 6);
    CHECK(memcmp(out, "world!", 6) == 0);
    CHECK_EQUAL(xMessageBufferReceive(buffer, out, sizeof out, 0), 0);
    /* One that can never fit does not wait. */
    CHECK_EQUAL(xMessageBufferSend(buffer, "0123456789abcdefghijkl", 22, portMAX_DELAY), 0);
    vMessageBufferDelete(buffer);
}

static int64_t send_from_interrupt(void *argument) {
    (void)argument;
    BaseType_t woken = pdFALSE;
    CHECK_EQUAL(xStreamBufferSendFromISR(s_buffer, "tick", 4, &woken), 4);
    CHECK_EQUAL(woken, pdTRUE);
    return INT64_MAX;
}

/* An interrupt's bytes wake the reader, and the interrupt is told so. */
static void test_from_interrupt(void) {
    s_buffer = xStreamBufferCreate(8, 1);
    TaskHandle_t reader = spawn(read_once, (void *)(uintptr_t)portMAX_DELAY, 12, 0);
    CHECK_SOON(eTaskGetState(reader) == eBlocked);
    vboard_interrupt_t *interrupt = vboard_interrupt_new(0, send_from_interrupt, NULL);
    vboard_interrupt_raise(interrupt);
    CHECK(xSemaphoreTake(s_done, portMAX_DELAY));
    CHECK_EQUAL(s_received, 4);
    vboard_interrupt_wait(interrupt);
    vboard_interrupt_delete(interrupt);
    vStreamBufferDelete(s_buffer);
}

void app_main(void) {
    vTaskPrioritySet(NULL, 10);
    s_done = xSemaphoreCreateBinary();
    test_stream_wraps();
    test_trigger_level();
    test_waits_for_space();
    test_messages();
    test_from_interrupt();
    exit(0);
}
