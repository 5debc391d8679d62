/* SPDX-License-Identifier: Apache-2.0 */
#include "names.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "esp_attr.h"
#include "esp_heap_caps.h"
#include "freertos/FreeRTOS.h"
#include "freertos/idf_additions.h"
#include "freertos/task.h"

/* Details of a task; each is 0 until it is known. */
typedef struct {
    char name[NAMES_NAME_SIZE];
    uint32_t core_and_one; /* of tskNO_AFFINITY and one: 0x80000000 */
    uint32_t priority_and_one;
} details_t;

typedef struct {
    const void *tasks[NAMES_TASKS];
    details_t details[NAMES_TASKS];
    const void *objects[NAMES_OBJECTS];
    uint32_t kinds[NAMES_OBJECTS];
} names_t;

static names_t *s_names;

/* In the place of an address that is another one's now: no task and no object is there. */
#define GONE ((const void *)s_names)

bool names_take_memory(void) {
    if (s_names == NULL) {
        s_names = heap_caps_calloc(1, sizeof(*s_names), MALLOC_CAP_INTERNAL | MALLOC_CAP_8BIT);
    }
    return s_names != NULL;
}

/* The number of an address; 0 where the table is full. */
static uint32_t IRAM_ATTR number_of(const void **keys, uint32_t count, const void *key, bool *is_new) {
    *is_new = false;
    for (uint32_t i = 0; i < count; i++) {
        const void *there = __atomic_load_n(&keys[i], __ATOMIC_RELAXED);
        if (there == NULL) {
            *is_new =
                __atomic_compare_exchange_n(&keys[i], &there, key, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
        }
        if (*is_new || there == key) { /* or somebody else was quicker with the same */
            return i + 1;
        }
    }
    return 0;
}

static void IRAM_ATTR forget(const void **keys, uint32_t count, const void *key) {
    for (uint32_t i = 0; i < count; i++) {
        const void *there = key;
        (void)__atomic_compare_exchange_n(&keys[i], &there, GONE, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    }
}

/* The task may have ended when the trace is sent. */
static void IRAM_ATTR note_details(details_t *details, const void *task) {
    TaskHandle_t handle = (TaskHandle_t)task;
    const char *name = pcTaskGetName(handle);
    for (uint32_t i = 0; i < NAMES_NAME_SIZE - 1 && name[i] != '\0'; i++) {
        details->name[i] = name[i];
    }
    __atomic_store_n(&details->core_and_one, (uint32_t)xTaskGetCoreID(handle) + 1, __ATOMIC_RELEASE);
}

uint32_t IRAM_ATTR names_of_task(const void *task) {
    bool is_new = false;
    uint32_t number = number_of(s_names->tasks, NAMES_TASKS, task, &is_new);
    if (is_new) {
        note_details(&s_names->details[number - 1], task);
    }
    return number;
}

uint32_t IRAM_ATTR names_of_object(const void *object, trace_object_kind_t kind) {
    bool is_new = false;
    uint32_t number = number_of(s_names->objects, NAMES_OBJECTS, object, &is_new);
    if (is_new) {
        names_set_kind(number, kind);
    }
    return number;
}

void IRAM_ATTR names_set_priority(uint32_t task, uint32_t base_priority) {
    if (task != 0) {
        __atomic_store_n(&s_names->details[task - 1].priority_and_one, base_priority + 1, __ATOMIC_RELAXED);
    }
}

void IRAM_ATTR names_set_kind(uint32_t object, trace_object_kind_t kind) {
    if (object != 0) {
        __atomic_store_n(&s_names->kinds[object - 1], (uint32_t)kind, __ATOMIC_RELAXED);
    }
}

void IRAM_ATTR names_forget_task(const void *task) {
    forget(s_names->tasks, NAMES_TASKS, task);
}

void IRAM_ATTR names_forget_object(const void *object) {
    forget(s_names->objects, NAMES_OBJECTS, object);
}

void names_clear(void) {
    memset(s_names, 0, sizeof *s_names);
}

void names_complete(void) {
    for (uint32_t i = 0; s_names != NULL && i < NAMES_TASKS; i++) {
        details_t *details = &s_names->details[i];
        if (details->core_and_one == 0 || details->priority_and_one != 0) {
            continue;
        }
        TaskHandle_t task =
            xTaskGetHandle(details->name); /* it may be gone: its address alone proves nothing */
        if (task != NULL && task == s_names->tasks[i]) {
            names_set_priority(i + 1, uxTaskPriorityGet(task));
        }
    }
}

names_task_t names_task(uint32_t number) {
    const details_t *details = &s_names->details[number - 1];
    names_task_t task = {.core = -1};
    memcpy(task.name, details->name, sizeof task.name);
    if (details->priority_and_one != 0) {
        task.priority = details->priority_and_one - 1;
    }
    if (details->core_and_one != 0 && details->core_and_one != (uint32_t)tskNO_AFFINITY + 1) {
        task.core = (int32_t)details->core_and_one - 1;
    }
    return task;
}

const char *names_object_kind(uint32_t number) {
    static const char *const kinds[] = {
        [TRACE_MUTEX] = "mutex",
        [TRACE_RECURSIVE] = "recursive",
        [TRACE_BINARY] = "binary",
        [TRACE_COUNTING] = "counting",
        [TRACE_QUEUE] = "queue",
        [TRACE_NOTIFICATION] = "notification",
        [TRACE_EVENT_GROUP] = "event_group",
    };
    return kinds[s_names->kinds[number - 1]];
}
