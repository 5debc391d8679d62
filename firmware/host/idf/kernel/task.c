/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks are threads: made with their priority and cores, ended at a point they can be ended at. */
#define _GNU_SOURCE
#include "kernel.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "esp_log.h"
#include "heap.h"

/* How long vTaskDelete waits for a task on another core to stop; past it the task goes at its next call. */
#define DELETE_WAIT_MS 100

task_t *all_tasks;
static task_t *s_ended;
static wait_list_t s_end_waiters;

static uint32_t heap_bytes(const task_t *task) {
    return task->stack_given ? 0 : task->stack_bytes;
}

static void add_to_all(task_t *task) {
    task->all_next = all_tasks;
    all_tasks = task;
    heap_take(heap_bytes(task));
}

static void remove_from_all(task_t *task) {
    for (task_t **link = &all_tasks; *link != NULL; link = &(*link)->all_next) {
        if (*link == task) {
            *link = task->all_next;
            heap_give(heap_bytes(task));
            return;
        }
    }
}

static bool is_alive(const task_t *task) {
    const task_t *other = all_tasks;
    while (other != NULL && other != task) {
        other = other->all_next;
    }
    return other != NULL;
}

static task_t *take_ended(void) {
    task_t *self = kernel_enter();
    task_t *task = s_ended;
    if (task != NULL) {
        s_ended = task->all_next;
    }
    kernel_leave(self);
    return task;
}

/* A thread cannot free the stack it runs on: the next creation or deletion does. */
static void free_ended(void) {
    for (task_t *task = take_ended(); task != NULL; task = take_ended()) {
        pthread_join(task->thread, NULL);
        stack_unmap(task);
        free(task);
    }
}

static void end_self(task_t *self) {
    self->kernel_depth = 1;
    (void)kernel_enter();
    request_forget_timer(self);
    run_time_note_end(self);
    remove_from_all(self);
    self->all_next = s_ended;
    s_ended = self;
    kernel_wake_all(&s_end_waiters);
    traceTASK_SWITCHED_OUT();
    __atomic_store_n(&self->requests, 0, __ATOMIC_RELAXED);
    kernel_leave(self);
}

static void announce(task_t *self) {
    task_adopt(self);
    self->kernel_depth = 1;
    (void)kernel_enter();
    self->tid = gettid();
    traceTASK_SWITCHED_IN();
    pthread_setname_np(self->thread, self->name);
    kernel_leave(self);
}

static void run(task_t *self) {
    self->stack_entry = __builtin_frame_address(0);
    undefer_requests(self);
    self->code(self->argument);
    ESP_LOGE("FreeRTOS", "FreeRTOS Task \"%s\" should not return, Aborting now!", self->name);
    abort();
}

static void *task_thread(void *argument) {
    task_t *self = argument;
    stack_t signal_stack;
    port_started();
    announce(self);
    stack_use_signal_stack(self, &signal_stack);
    if (sigsetjmp(self->exit_point, 1) == 0) {
        run(self);
    }
    sigaltstack(&signal_stack, NULL); /* a sanitizer unmaps the one that it finds at a thread's end */
    port_free_thread_locals();
    end_self(self);
    port_before_end();
    return NULL;
}

/* In the kernel, so that the thread does not end, and is not freed, before it has its priority. */
static bool start_thread(task_t *task) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, task->stack, task->stack_mapped_bytes);
    port_fill_attributes(&attributes, 0, task->core);
    task_t *self = kernel_enter();
    port_before_start();
    bool started = pthread_create(&task->thread, &attributes, task_thread, task) == 0;
    if (started) {
        task->thread_known = true;
        port_give_priority(task);
    } else {
        port_started();
    }
    kernel_leave(self);
    pthread_attr_destroy(&attributes);
    return started;
}

static task_t *new_task(TaskFunction_t code, const char *name, uint32_t stack_bytes, void *argument,
                        UBaseType_t priority, BaseType_t core, bool stack_given) {
    task_t *task = stack_given || heap_has_room(stack_bytes) ? calloc(1, sizeof *task) : NULL;
    if (task == NULL || !stack_map(task, stack_bytes)) {
        free(task);
        return NULL;
    }
    task->stack_given = stack_given;
    strncpy(task->name, name != NULL ? name : "", sizeof task->name - 1);
    task->code = code;
    task->argument = argument;
    task->core = core;
    task->priority = task->base_priority =
        priority < configMAX_PRIORITIES ? priority : configMAX_PRIORITIES - 1;
    return task;
}

static void discard(task_t *task) {
    task_t *self = kernel_enter();
    remove_from_all(task);
    kernel_leave(self);
    stack_unmap(task);
    free(task);
}

static BaseType_t create(TaskFunction_t pxTaskCode, const char *const pcName, const uint32_t ulStackDepth,
                         void *const pvParameters, UBaseType_t uxPriority, TaskHandle_t *const pxCreatedTask,
                         const BaseType_t xCoreID, bool stack_given) {
    configASSERT(xCoreID == tskNO_AFFINITY || taskVALID_CORE_ID(xCoreID));
    free_ended();
    task_t *task = new_task(pxTaskCode, pcName, ulStackDepth, pvParameters, uxPriority, xCoreID, stack_given);
    if (task == NULL) {
        return errCOULD_NOT_ALLOCATE_REQUIRED_MEMORY;
    }
    task_t *self = kernel_enter();
    add_to_all(task);
    traceTASK_CREATE(task);
    traceMOVED_TASK_TO_READY_STATE(task);
    kernel_leave(self);
    if (pxCreatedTask != NULL) {
        *pxCreatedTask = task; /* before it runs: it may outrank its creator */
    }
    if (!start_thread(task)) {
        discard(task);
        if (pxCreatedTask != NULL) {
            *pxCreatedTask = NULL;
        }
        return errCOULD_NOT_ALLOCATE_REQUIRED_MEMORY;
    }
    return pdPASS;
}

BaseType_t xTaskCreatePinnedToCore(TaskFunction_t pxTaskCode, const char *const pcName,
                                   const uint32_t ulStackDepth, void *const pvParameters,
                                   UBaseType_t uxPriority, TaskHandle_t *const pxCreatedTask,
                                   const BaseType_t xCoreID) {
    return create(pxTaskCode, pcName, ulStackDepth, pvParameters, uxPriority, pxCreatedTask, xCoreID, false);
}

BaseType_t xTaskCreate(TaskFunction_t pxTaskCode, const char *const pcName,
                       const configSTACK_DEPTH_TYPE usStackDepth, void *const pvParameters,
                       UBaseType_t uxPriority, TaskHandle_t *const pxCreatedTask) {
    return xTaskCreatePinnedToCore(pxTaskCode, pcName, usStackDepth, pvParameters, uxPriority, pxCreatedTask,
                                   tskNO_AFFINITY);
}

TaskHandle_t xTaskCreateStaticPinnedToCore(TaskFunction_t pxTaskCode, const char *const pcName,
                                           const uint32_t ulStackDepth, void *const pvParameters,
                                           UBaseType_t uxPriority, StackType_t *const puxStackBuffer,
                                           StaticTask_t *const pxTaskBuffer, const BaseType_t xCoreID) {
    TaskHandle_t task = NULL;
    if (puxStackBuffer != NULL && pxTaskBuffer != NULL) {
        create(pxTaskCode, pcName, ulStackDepth, pvParameters, uxPriority, &task, xCoreID, true);
    }
    return task;
}

TaskHandle_t xTaskCreateStatic(TaskFunction_t pxTaskCode, const char *const pcName,
                               const uint32_t ulStackDepth, void *const pvParameters, UBaseType_t uxPriority,
                               StackType_t *const puxStackBuffer, StaticTask_t *const pxTaskBuffer) {
    return xTaskCreateStaticPinnedToCore(pxTaskCode, pcName, ulStackDepth, pvParameters, uxPriority,
                                         puxStackBuffer, pxTaskBuffer, tskNO_AFFINITY);
}

static void delete_self(task_t *self) {
    if (self->adopted) {
        pthread_exit(NULL);
    }
    siglongjmp(self->exit_point, 1);
}

static void delete_other(task_t *task) {
    task_t *self = kernel_enter();
    int64_t deadline_us = ticks_deadline_us(pdMS_TO_TICKS(DELETE_WAIT_MS));
    request_post(task, REQUEST_DELETE);
    kernel_wake(task);
    while (is_alive(task) && kernel_block(self, &s_end_waiters, deadline_us)) {
    }
    kernel_leave(self);
    free_ended();
}

void vTaskDelete(TaskHandle_t xTaskToDelete) {
    task_t *self = task_self();
    if (xTaskToDelete == NULL || xTaskToDelete == self) {
        delete_self(self);
    } else if (!xTaskToDelete->adopted) {
        delete_other(xTaskToDelete);
    }
}

uint32_t task_stacks_bytes(void) {
    uint32_t bytes = 0;
    task_t *self = kernel_enter();
    for (const task_t *task = all_tasks; task != NULL; task = task->all_next) {
        bytes += heap_bytes(task);
    }
    kernel_leave(self);
    return bytes;
}
