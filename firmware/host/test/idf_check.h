/* SPDX-License-Identifier: Apache-2.0 */
/* For the tests of host/idf: what is checked, and how a test program ends. */
#pragma once
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "freertos/FreeRTOS.h"
#include "freertos/semphr.h"
#include "freertos/task.h"
#include "vboard.h"

#define CHECK(condition)                                                                                     \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            dprintf(STDERR_FILENO, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                   \
            _exit(1);                                                                                        \
        }                                                                                                    \
    } while (0)

#define CHECK_EQUAL(actual, expected)                                                                        \
    do {                                                                                                     \
        long long actual_ = (long long)(actual);                                                             \
        long long expected_ = (long long)(expected);                                                         \
        if (actual_ != expected_) {                                                                          \
            dprintf(STDERR_FILENO, "%s:%d: %s is %lld, not %lld\n", __FILE__, __LINE__, #actual, actual_,    \
                    expected_);                                                                              \
            _exit(1);                                                                                        \
        }                                                                                                    \
    } while (0)

/* Waits for a state another task brings about; a test that hangs names what it waited for. */
#define CHECK_SOON(condition)                                                                                \
    do {                                                                                                     \
        int patience_ = 5000;                                                                                \
        while (!(condition) && patience_-- > 0) {                                                            \
            vTaskDelay(1);                                                                                   \
        }                                                                                                    \
        CHECK(condition);                                                                                    \
    } while (0)

#define TEST_STACK_BYTES 4096

static inline bool realtime(void) {
    return strcmp(vboard_sched_name(), "fifo") == 0;
}

static inline TaskHandle_t spawn(TaskFunction_t code, void *argument, UBaseType_t priority, BaseType_t core) {
    TaskHandle_t task = NULL;
    CHECK_EQUAL(xTaskCreatePinnedToCore(code, "test", TEST_STACK_BYTES, argument, priority, &task, core),
                pdPASS);
    return task;
}
