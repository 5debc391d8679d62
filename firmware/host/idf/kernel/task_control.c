/* SPDX-License-Identifier: Apache-2.0 */
/* What tasks do to themselves and to each other: wait, change priority, suspend, ask. */
#define _GNU_SOURCE
#include <string.h>

#include "kernel.h"
#include "vboard.h"

static task_t *or_self(task_t *task, task_t *self) {
    return task != NULL ? task : self;
}

void vTaskDelay(const TickType_t xTicksToDelay) {
    if (xTicksToDelay == 0) {
        vPortYield();
        return;
    }
    task_t *self = kernel_enter();
    traceTASK_DELAY();
    kernel_block(self, NULL, ticks_deadline_us(xTicksToDelay));
    kernel_leave(self);
}

BaseType_t xTaskDelayUntil(TickType_t *const pxPreviousWakeTime, const TickType_t xTimeIncrement) {
    task_t *self = kernel_enter();
    int64_t now = tick_count_now();
    *pxPreviousWakeTime += xTimeIncrement;
    int32_t ahead = (int32_t)(*pxPreviousWakeTime - (TickType_t)now); /* right across the 32-bit wrap */
    if (ahead > 0) {
        traceTASK_DELAY_UNTIL(*pxPreviousWakeTime);
        kernel_block(self, NULL, (now + ahead) * TICK_US);
    }
    kernel_leave(self);
    return ahead > 0 ? pdTRUE : pdFALSE;
}

BaseType_t xTaskAbortDelay(TaskHandle_t xTask) {
    task_t *self = kernel_enter();
    bool blocked = xTask->blocked;
    if (blocked) {
        kernel_wake(xTask);
    }
    kernel_leave(self);
    return blocked ? pdPASS : pdFAIL;
}

/* In the kernel. A waiting task takes the place in line of its new priority. */
void task_set_priority(task_t *task, UBaseType_t priority) {
    if (task->priority == priority) {
        return;
    }
    bool lower_self = priority < task->priority && task == task_self();
    __atomic_store_n(&task->priority, priority, __ATOMIC_RELEASE);
    wait_list_t *list = task->waiting_on;
    if (list != NULL) {
        wait_list_remove(task);
        wait_list_insert(list, task);
    }
    if (task->scheduler_suspended > 0) {
        return; /* xTaskResumeAll will */
    }
    __atomic_store_n(&task->priority_to_lower, lower_self, __ATOMIC_RELEASE);
    if (!lower_self) {
        port_apply_priority(task, port_linux_priority(priority));
    }
}

UBaseType_t uxTaskPriorityGet(const TaskHandle_t xTask) {
    task_t *self = kernel_enter();
    UBaseType_t priority = or_self(xTask, self)->priority;
    kernel_leave(self);
    return priority;
}

void vTaskPrioritySet(TaskHandle_t xTask, UBaseType_t uxNewPriority) {
    configASSERT(uxNewPriority < configMAX_PRIORITIES);
    task_t *self = kernel_enter();
    task_t *task = or_self(xTask, self);
    bool inherited = task->priority != task->base_priority;
    task->base_priority = uxNewPriority;
    if (!inherited || uxNewPriority > task->priority) {
        task_set_priority(task, uxNewPriority);
    }
    kernel_leave(self);
}

void vTaskSuspend(TaskHandle_t xTaskToSuspend) {
    task_t *self = kernel_enter();
    task_t *task = or_self(xTaskToSuspend, self);
    traceTASK_SUSPEND(task);
    wait_list_remove(task); /* a suspended task takes no wake-up from the others that wait */
    if (task == self) {
        __atomic_or_fetch(&task->requests, REQUEST_SUSPEND, __ATOMIC_RELEASE);
    } else {
        request_post(task, REQUEST_SUSPEND);
    }
    kernel_leave(self);
}

void vTaskResume(TaskHandle_t xTaskToResume) {
    task_t *self = kernel_enter();
    uint32_t before = __atomic_fetch_and(&xTaskToResume->requests, ~REQUEST_SUSPEND, __ATOMIC_RELEASE);
    if ((before & REQUEST_SUSPEND) != 0) {
        if (!xTaskToResume->blocked) {
            traceMOVED_TASK_TO_READY_STATE(xTaskToResume);
        }
        kernel_wake(xTaskToResume); /* as in FreeRTOS: it left the delayed and event lists when suspended */
    }
    kernel_leave(self);
    if ((before & REQUEST_SUSPEND) != 0) {
        port_futex_wake(&xTaskToResume->requests, 1);
    }
}

/* One of equal priority is to be switched to as well, as in ESP-IDF's kernel. */
BaseType_t xTaskResumeFromISR(TaskHandle_t xTaskToResume) {
    task_t *self = kernel_enter();
    bool suspended = (__atomic_load_n(&xTaskToResume->requests, __ATOMIC_RELAXED) & REQUEST_SUSPEND) != 0;
    bool switches = suspended && kernel_would_switch_to(xTaskToResume, xTaskToResume->priority + 1);
    kernel_leave(self);
    vTaskResume(xTaskToResume);
    return switches ? pdTRUE : pdFALSE;
}

/* No other task of this core runs: the caller gets a priority above all tasks. */
void vTaskSuspendAll(void) {
    task_t *self = kernel_enter();
    if (self->scheduler_suspended++ == 0) {
        port_apply_priority(self, port_linux_priority(configMAX_PRIORITIES));
    }
    kernel_leave(self);
}

BaseType_t xTaskResumeAll(void) {
    task_t *self = kernel_enter();
    configASSERT(self->scheduler_suspended > 0);
    if (--self->scheduler_suspended == 0) {
        port_apply_priority(self, port_linux_priority(self->priority));
    }
    kernel_leave(self);
    return pdFALSE;
}

BaseType_t xTaskGetSchedulerState(void) {
    return task_self()->scheduler_suspended > 0 ? taskSCHEDULER_SUSPENDED : taskSCHEDULER_RUNNING;
}

TickType_t xTaskGetTickCount(void) {
    return (TickType_t)tick_count_now();
}

TickType_t xTaskGetTickCountFromISR(void) {
    return xTaskGetTickCount();
}

UBaseType_t uxTaskGetNumberOfTasks(void) {
    task_t *self = kernel_enter();
    UBaseType_t count = 0;
    for (const task_t *task = all_tasks; task != NULL; task = task->all_next) {
        count++;
    }
    kernel_leave(self);
    return count;
}

char *pcTaskGetName(TaskHandle_t xTaskToQuery) {
    return or_self(xTaskToQuery, task_self())->name;
}

TaskHandle_t xTaskGetHandle(const char *pcNameToQuery) {
    task_t *self = kernel_enter();
    task_t *task = all_tasks;
    while (task != NULL && strncmp(task->name, pcNameToQuery, sizeof task->name - 1) != 0) {
        task = task->all_next;
    }
    kernel_leave(self);
    return task;
}

TaskHandle_t xTaskGetCurrentTaskHandle(void) {
    return task_self();
}

BaseType_t xTaskGetCoreID(TaskHandle_t xTask) {
    return or_self(xTask, task_self())->core;
}

eTaskState eTaskGetState(TaskHandle_t xTask) {
    task_t *self = kernel_enter();
    uint32_t requests = __atomic_load_n(&xTask->requests, __ATOMIC_RELAXED);
    eTaskState state = xTask == self ? eRunning : eReady;
    if ((requests & REQUEST_DELETE) != 0) {
        state = eDeleted;
    } else if ((requests & REQUEST_SUSPEND) != 0) {
        state = eSuspended;
    } else if (xTask->blocked && __atomic_load_n(&xTask->wake, __ATOMIC_RELAXED) == 0) {
        state = eBlocked;
    }
    kernel_leave(self);
    return state;
}

UBaseType_t uxTaskGetStackHighWaterMark(TaskHandle_t xTask) {
    return (UBaseType_t)stack_high_water_mark(or_self(xTask, task_self()));
}

configSTACK_DEPTH_TYPE uxTaskGetStackHighWaterMark2(TaskHandle_t xTask) {
    return uxTaskGetStackHighWaterMark(xTask);
}

void vTaskSetThreadLocalStoragePointer(TaskHandle_t xTaskToSet, BaseType_t xIndex, void *pvValue) {
    if (xIndex >= 0 && xIndex < configNUM_THREAD_LOCAL_STORAGE_POINTERS) {
        or_self(xTaskToSet, task_self())->locals[xIndex] = pvValue;
    }
}

void *pvTaskGetThreadLocalStoragePointer(TaskHandle_t xTaskToQuery, BaseType_t xIndex) {
    bool valid = xIndex >= 0 && xIndex < configNUM_THREAD_LOCAL_STORAGE_POINTERS;
    return valid ? or_self(xTaskToQuery, task_self())->locals[xIndex] : NULL;
}
