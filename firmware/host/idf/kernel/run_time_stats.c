/* SPDX-License-Identifier: Apache-2.0 */
/* What an idle task would have been given: the time less the CPU time of the tasks' threads.
 *
 * A pinned task's time is its core's. Of a task without affinity Linux does not tell which CPU it ran on: its
 * time is shared out evenly, and what a core has no room for between two looks goes to the other. So the sum
 * over the cores is right, and how it is divided only where tasks are pinned. */
#include "kernel.h"
#include "vboard.h"

#define NS_PER_US 1000

typedef struct {
    int64_t pinned[portNUM_PROCESSORS];
    int64_t floating;
} cpu_time_ns_t;

static cpu_time_ns_t s_ended; /* of tasks that are no more; this and all that follows: in the kernel */
static cpu_time_ns_t s_seen;
static int64_t s_seen_at_ns;
static int64_t s_idle_ns[portNUM_PROCESSORS];

static int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static int64_t at_least_zero(int64_t value) {
    return value > 0 ? value : 0;
}

static void add_task(cpu_time_ns_t *sum, const task_t *task) {
    int64_t used_ns = port_cpu_time_ns(task);
    if (task->core == tskNO_AFFINITY) {
        sum->floating += used_ns;
    } else {
        sum->pinned[task->core] += used_ns;
    }
}

void run_time_note_end(const task_t *self) {
    add_task(&s_ended, self);
}

static void share_out(int64_t floating_ns, int64_t free_ns[portNUM_PROCESSORS]) {
    int64_t even_ns = floating_ns / portNUM_PROCESSORS;
    for (int core = 0; core < portNUM_PROCESSORS; core++) {
        int64_t given_ns = smaller(even_ns, free_ns[core]);
        free_ns[core] -= given_ns;
        floating_ns -= given_ns;
    }
    for (int core = 0; core < portNUM_PROCESSORS; core++) {
        int64_t given_ns = smaller(floating_ns, free_ns[core]);
        free_ns[core] -= given_ns;
        floating_ns -= given_ns;
    }
}

/* In the kernel. */
static void look(void) {
    cpu_time_ns_t now = s_ended;
    for (const task_t *task = all_tasks; task != NULL; task = task->all_next) {
        add_task(&now, task);
    }
    int64_t now_ns = vboard_uptime_us() * NS_PER_US;
    int64_t free_ns[portNUM_PROCESSORS];
    for (int core = 0; core < portNUM_PROCESSORS; core++) {
        free_ns[core] = at_least_zero(now_ns - s_seen_at_ns - (now.pinned[core] - s_seen.pinned[core]));
    }
    share_out(now.floating - s_seen.floating, free_ns);
    for (int core = 0; core < portNUM_PROCESSORS; core++) {
        s_idle_ns[core] += free_ns[core];
    }
    s_seen = now;
    s_seen_at_ns = now_ns;
}

configRUN_TIME_COUNTER_TYPE ulTaskGetIdleRunTimeCounterForCore(BaseType_t xCoreID) {
    configASSERT(taskVALID_CORE_ID(xCoreID));
    task_t *self = kernel_enter();
    look();
    int64_t idle_us = s_idle_ns[xCoreID] / NS_PER_US;
    kernel_leave(self);
    return (configRUN_TIME_COUNTER_TYPE)idle_us;
}

configRUN_TIME_COUNTER_TYPE ulTaskGetIdleRunTimePercentForCore(BaseType_t xCoreID) {
    configRUN_TIME_COUNTER_TYPE percent_of_time = portGET_RUN_TIME_COUNTER_VALUE() / 100;
    return percent_of_time > 0 ? ulTaskGetIdleRunTimeCounterForCore(xCoreID) / percent_of_time : 0;
}

configRUN_TIME_COUNTER_TYPE ulTaskGetIdleRunTimeCounter(void) {
    return ulTaskGetIdleRunTimeCounterForCore(xPortGetCoreID());
}

configRUN_TIME_COUNTER_TYPE ulTaskGetIdleRunTimePercent(void) {
    return ulTaskGetIdleRunTimePercentForCore(xPortGetCoreID());
}

static eTaskState state_of(const task_t *task, const task_t *self) {
    if ((__atomic_load_n(&task->requests, __ATOMIC_ACQUIRE) & REQUEST_SUSPEND) != 0) {
        return eSuspended;
    }
    return task == self ? eRunning : task->blocked ? eBlocked : eReady;
}

static TaskStatus_t status_of(task_t *task, const task_t *self) {
    return (TaskStatus_t){
        .xHandle = task,
        .pcTaskName = task->name,
        .xTaskNumber = (UBaseType_t)task->tid,
        .eCurrentState = state_of(task, self),
        .uxCurrentPriority = task->priority,
        .uxBasePriority = task->base_priority,
        .ulRunTimeCounter = (configRUN_TIME_COUNTER_TYPE)(port_cpu_time_ns(task) / NS_PER_US),
        .pxStackBase = task->stack,
        .usStackHighWaterMark = (configSTACK_DEPTH_TYPE)stack_high_water_mark(task),
    };
}

UBaseType_t uxTaskGetSystemState(TaskStatus_t *const pxTaskStatusArray, const UBaseType_t uxArraySize,
                                 configRUN_TIME_COUNTER_TYPE *const pulTotalRunTime) {
    task_t *self = kernel_enter();
    UBaseType_t count = 0;
    for (task_t *task = all_tasks; task != NULL; task = task->all_next) {
        if (count < uxArraySize) {
            pxTaskStatusArray[count] = status_of(task, self);
        }
        count++;
    }
    kernel_leave(self);
    if (pulTotalRunTime != NULL) {
        *pulTotalRunTime = portGET_RUN_TIME_COUNTER_VALUE();
    }
    return count <= uxArraySize ? count : 0;
}
