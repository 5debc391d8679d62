/* SPDX-License-Identifier: Apache-2.0 */
/* What the macros of trace/hooks.h and a bench's marks call. */
#include "trace/hooks.h"

#include "esp_attr.h"
#include "freertos/FreeRTOS.h"
#include "freertos/task.h"
#include "names.h"
#include "ring.h"

void IRAM_ATTR trace_hook_task(trace_event_t event, const void *task, uint32_t base_priority,
                               uint32_t argument) {
    uint32_t number = names_of_task(task);
    names_set_priority(number, base_priority);
    ring_record(event, number, argument);
}

void IRAM_ATTR trace_hook_object(trace_event_t event, const void *object, trace_object_kind_t kind) {
    uint32_t task = names_of_task(xTaskGetCurrentTaskHandle());
    ring_record(event, task, names_of_object(object, kind));
}

void IRAM_ATTR trace_hook_new_task(const void *task) {
    names_forget_task(task);
    names_forget_object(task); /* as what it is notified by */
}

void IRAM_ATTR trace_hook_new_object(const void *object) {
    names_forget_object(object);
}

void IRAM_ATTR trace_hook_object_is(const void *object, trace_object_kind_t kind) {
    names_set_kind(names_of_object(object, kind), kind);
}

static void IRAM_ATTR record_of_current_task(uint32_t event, uint32_t argument) {
    if (trace_is_on != 0) {
        ring_record(event, names_of_task(xTaskGetCurrentTaskHandle()), argument);
    }
}

void IRAM_ATTR trace_mark(trace_mark_t mark, uint32_t value) {
    record_of_current_task((uint32_t)TRACE_MARK + (uint32_t)mark, value);
}

void IRAM_ATTR trace_isr_enter(void) {
    record_of_current_task(TRACE_ISR_ENTER, 0);
}

void IRAM_ATTR trace_isr_exit(void) {
    record_of_current_task(TRACE_ISR_EXIT, 0);
}
