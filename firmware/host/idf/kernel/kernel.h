/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel under the FreeRTOS API: one lock, wait lists by priority, one futex a task.
 *
 * A blocked task sleeps on its own futex word; whoever makes its condition true removes it from the wait list
 * and sets the word. As in FreeRTOS nothing is handed over: the woken task looks again and may find that a
 * task of higher priority was quicker. Wake-ups are sent after the lock is released, so that a woken task of
 * higher priority does not run into the lock of the one it preempts. */
#pragma once
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "freertos/FreeRTOS.h"
#include "freertos/event_groups.h"
#include "freertos/task.h"

/* What the trace macros read of this kernel's structures; the macros themselves are the chips'. */
#define TRACE_CURRENT_TASK task_self()
#define TRACE_PRIORITY_OF(task) ((task)->priority)
#define TRACE_BASE_PRIORITY_OF(task) ((task)->base_priority)
#define TRACE_KIND_OF(queue) queue_trace_kind(queue)
#define TRACE_NOTIFIED_TASK xTaskToNotify
#define TRACE_IS_NOTIFIED(task, index) ((task)->notify_pending)
#define TRACE_NOTIFIED_VALUE(task, index) ((task)->notify_value)
#include "trace/hooks.h"

#define NEVER_US INT64_MAX
#define TICK_US (1000000 / configTICK_RATE_HZ)

#define REQUEST_SUSPEND 1U
#define REQUEST_DELETE 2U

typedef struct tskTaskControlBlock task_t;
typedef struct {
    task_t *head;
} wait_list_t;

typedef struct {
    EventBits_t bits; /* waited for; after a wake-up the group's bits that satisfied the wait */
    bool all;         /* every bit, not any */
    bool clear;       /* clear them on the way out */
    bool satisfied;
} event_wait_t;

/* What the watchdogs noted of a task when they last looked. */
typedef struct {
    bool masked;
    uint32_t masked_entries;
    int64_t masked_from_ns; /* of its CPU time */
    int64_t seen_ns;        /* of its CPU time */
    int64_t hogging_ns;     /* of CPU time without a wait, on one core */
    uint64_t waits;
    BaseType_t core;
} watched_t;

struct tskTaskControlBlock {
    char name[configMAX_TASK_NAME_LEN];
    TaskFunction_t code;
    void *argument;
    BaseType_t core;

    pthread_t thread;
    bool thread_known;
    bool adopted; /* a thread made by someone else, seen when it first called in */
    bool isr;     /* no task: an interrupt (system/interrupt.c) */
    bool raising; /* raised an interrupt and waits for it: on a chip it is the one that was interrupted */
    pid_t tid;

    UBaseType_t base_priority;
    UBaseType_t priority; /* with inheritance */
    unsigned mutexes_held;
    unsigned scheduler_suspended;
    bool priority_to_lower; /* of the thread, when the kernel is left */

    uint32_t wake; /* futex word: 1 = woken */
    bool blocked;
    wait_list_t *waiting_on;
    task_t *wait_next;
    event_wait_t event;

    uint32_t notify_value;
    bool notify_pending;
    wait_list_t notify_waiter;

    /* Critical sections, and an interrupt's service: how deep in them, and how often from outside. Written by
     * itself, with what the interrupt watchdog noted of it (system/watchdogs.c) beside. */
    uint32_t masked;
    uint32_t masked_entries;
    watched_t watch;

    uint32_t requests;                  /* futex word: REQUEST_ bits */
    volatile sig_atomic_t kernel_depth; /* > 0: requests wait until the kernel is left */
    int nags_left;
    bool nag_created;
    timer_t nag;
    sigjmp_buf exit_point;

    uint8_t *stack; /* with a guard page below */
    size_t stack_mapped_bytes;
    uint32_t stack_bytes; /* what the task asked for */
    bool stack_given;     /* by who made it: not from the heap */
    uint8_t *stack_entry; /* the task function's frame */
    void *locals[configNUM_THREAD_LOCAL_STORAGE_POINTERS];
    task_t *all_next;
};

/* kernel.c */
task_t *task_self(void);
task_t *kernel_enter(void);
void kernel_leave(task_t *self);
/* In the kernel: sleeps until woken (true) or until deadline_us on the board's clock (false). */
bool kernel_block(task_t *self, wait_list_t *list, int64_t deadline_us);
void kernel_wake(task_t *task);
void kernel_wake_first(wait_list_t *list);
void kernel_wake_all(wait_list_t *list);
/* For …FromISR calls: sets it where the caller's last call of the kernel woke a task that this core would
 * switch to: one that may run on it, of a higher priority than the one that was interrupted. */
void kernel_tell_woken(BaseType_t *woken);
/* In the kernel: whether this core would switch to the task, of a priority that it has or is taken to have.
 */
bool kernel_would_switch_to(const task_t *task, UBaseType_t priority);
/* NULL where the thread has not called in yet. */
task_t *kernel_known_self(void);
int64_t ticks_deadline_us(TickType_t ticks);
int64_t tick_count_now(void);
/* Outside the kernel: does what other tasks asked of this one. */
void serve_requests(task_t *self);
void defer_requests(task_t *self);
void undefer_requests(task_t *self);

/* wait_list.c */
void wait_list_insert(wait_list_t *list, task_t *task);
void wait_list_remove(task_t *task);

/* request.c */
void request_init(void);
void request_post(task_t *task, uint32_t request);
void request_forget_timer(task_t *task);
void request_park(task_t *self);
/* The same by a task that runs. */
void request_park_running(task_t *self);

/* port.c */
void port_init(void);
bool port_realtime(void);
int port_linux_priority(UBaseType_t priority);
/* 0: no real-time priority */
void port_fill_attributes(pthread_attr_t *attributes, int linux_priority, BaseType_t core);
void port_give_priority(task_t *task);
/* By who starts a thread, before; and by the thread itself, or by its creator where there is none. */
void port_before_start(void);
void port_started(void);
/* By a task's thread that is about to end, and that is about to return. */
void port_free_thread_locals(void);
void port_before_end(void);
void port_apply_priority(task_t *task, int linux_priority);
/* Of a thread, as Linux tells: whether it is ready to run or runs, on which core it last ran, and how often
 * it has waited; a core that is none where there is no such thread. */
typedef struct {
    bool ready;
    BaseType_t core;
    uint64_t waits;
} thread_state_t;
thread_state_t port_thread_state(const task_t *task);
int64_t port_cpu_time_ns(const task_t *task);
/* Interrupts are masked from here on, and no more. */
void port_mask(task_t *self);
void port_unmask(task_t *self);
long port_futex_wait(uint32_t *word, uint32_t value, int64_t deadline_us);
void port_futex_wake(uint32_t *word, int count);

/* stack.c */
bool stack_map(task_t *task, uint32_t stack_bytes);
void stack_unmap(task_t *task);
void stack_use_signal_stack(const task_t *task, stack_t *before);
bool stack_guard_contains(const task_t *task, const void *address);
size_t stack_high_water_mark(const task_t *task);

/* run_time_stats.c. In the kernel, by the task itself before it leaves the list of all tasks. */
void run_time_note_end(const task_t *self);

/* task.c */
extern task_t *all_tasks;
void task_adopt(task_t *task);
void task_set_priority(task_t *task, UBaseType_t priority);
uint32_t task_stacks_bytes(void); /* of those that are taken from the heap */
