/* SPDX-License-Identifier: Apache-2.0 */
/* For the tests of the trace: the events that are there, with names for numbers. */
#pragma once

#include "idf_check.h"
#include "names.h"
#include "ring.h"
#include "trace/trace.h"

static inline uint32_t number_of_task(const char *name) {
    for (uint32_t number = 1; number <= NAMES_TASKS; number++) {
        if (strcmp(names_task(number).name, name) == 0) {
            return number;
        }
    }
    return 0;
}

/* The next event of the task from `*number` on that is this; moves `*number` past it. */
static inline ring_event_t expect_event(uint32_t *number, const char *task, uint32_t wanted) {
    ring_event_t event = {0};
    for (; *number != ring_end(); ++*number) {
        if (ring_read(*number, &event) && event.event == wanted && event.task == number_of_task(task)) {
            ++*number;
            return event;
        }
    }
    fprintf(stderr, "no event %u of task %s follows\n", (unsigned)wanted, task);
    _exit(1);
}

static inline bool has_event(const char *task, uint32_t wanted) {
    for (uint32_t number = ring_first(); number != ring_end(); number++) {
        ring_event_t event;
        if (ring_read(number, &event) && event.event == wanted && event.task == number_of_task(task)) {
            return true;
        }
    }
    return false;
}

static inline void expect_object(ring_event_t event, const char *kind) {
    const char *actual = event.argument == 0 ? "none" : names_object_kind(event.argument);
    if (strcmp(actual, kind) != 0) {
        fprintf(stderr, "the object is a %s, not a %s\n", actual, kind);
        _exit(1);
    }
}

static inline TaskHandle_t spawn_named(const char *name, TaskFunction_t code, UBaseType_t priority,
                                       BaseType_t core) {
    TaskHandle_t task = NULL;
    CHECK_EQUAL(xTaskCreatePinnedToCore(code, name, TEST_STACK_BYTES, NULL, priority, &task, core), pdPASS);
    return task;
}
