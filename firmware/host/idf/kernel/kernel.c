/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "kernel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vboard.h"

#define DEFERRED_WAKES 16

static pthread_once_t s_once = PTHREAD_ONCE_INIT;
static pthread_mutex_t s_lock;
static pthread_key_t s_adopted_key;
static __thread task_t *s_self;
static __thread uint32_t *s_wakes[DEFERRED_WAKES];
static __thread int s_wake_count;
static __thread bool s_woke; /* since the kernel was entered, one that outranks who was interrupted */

static void free_adopted(void *task) {
    free(task);
}

static void kernel_init(void) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(&s_lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
    pthread_key_create(&s_adopted_key, free_adopted);
    port_init();
    request_init();
}

void task_adopt(task_t *task) {
    pthread_once(&s_once, kernel_init);
    s_self = task;
}

/* A thread of a library, or main() before the scheduler, becomes a task when it first calls in. */
static task_t *adopt_foreign_thread(void) {
    task_t *task = calloc(1, sizeof *task);
    if (task == NULL) {
        abort();
    }
    task->adopted = true;
    task->tid = gettid();
    task->thread = pthread_self();
    task->thread_known = true;
    task->core = tskNO_AFFINITY;
    task->priority = task->base_priority = 1;
    memcpy(task->name, "thread", sizeof "thread");
    task_adopt(task);
    pthread_setspecific(s_adopted_key, task);
    return task;
}

task_t *task_self(void) {
    return s_self != NULL ? s_self : adopt_foreign_thread();
}

task_t *kernel_known_self(void) {
    return s_self;
}

static void send_wakes(void) {
    for (int i = 0; i < s_wake_count; i++) {
        port_futex_wake(s_wakes[i], 1);
    }
    s_wake_count = 0;
}

static void lock(void) {
    pthread_mutex_lock(&s_lock);
}

/* A task that lowers its own priority does so after waking others: whoever is between the two priorities
 * must not run before those. It goes behind those of its new priority, where Linux would put it before them.
 */
static void lower_own_priority(void) {
    if (!__atomic_exchange_n(&s_self->priority_to_lower, false, __ATOMIC_ACQ_REL)) {
        return;
    }
    UBaseType_t applied;
    do { /* again when another task changed it meanwhile */
        applied = __atomic_load_n(&s_self->priority, __ATOMIC_ACQUIRE);
        port_apply_priority(s_self, port_linux_priority(applied));
    } while (applied != __atomic_load_n(&s_self->priority, __ATOMIC_ACQUIRE));
    vPortYield();
}

static void unlock(void) {
    pthread_mutex_unlock(&s_lock);
    send_wakes();
    lower_own_priority();
}

void defer_requests(task_t *self) {
    self->kernel_depth++;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

void undefer_requests(task_t *self) {
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    self->kernel_depth--;
    serve_requests(self);
}

task_t *kernel_enter(void) {
    task_t *self = task_self();
    defer_requests(self);
    lock();
    s_woke = false;
    return self;
}

void kernel_leave(task_t *self) {
    unlock();
    undefer_requests(self);
}

void serve_requests(task_t *self) {
    if (self->kernel_depth == 0 && __atomic_load_n(&self->requests, __ATOMIC_ACQUIRE) != 0) {
        request_park_running(self);
    }
}

static void sleep_until_woken(task_t *self, int64_t deadline_us) {
    while (__atomic_load_n(&self->wake, __ATOMIC_ACQUIRE) == 0) {
        if (port_futex_wait(&self->wake, 0, deadline_us) == ETIMEDOUT) {
            return;
        }
    }
}

/* A suspended task must not look at its condition again before it is resumed. */
static void park_outside_lock(task_t *self) {
    while (__atomic_load_n(&self->requests, __ATOMIC_ACQUIRE) != 0) {
        unlock();
        request_park(self);
        lock();
    }
}

bool kernel_block(task_t *self, wait_list_t *list, int64_t deadline_us) {
    /* On the chip: an assertion of the kernel or the interrupt watchdog. */
    assert(!self->isr && "blocking call in an interrupt");
    assert(self->kernel_depth == 1 && "blocking call inside a critical section");
    assert(self->scheduler_suspended == 0 && "blocking call while the scheduler is suspended");
    __atomic_store_n(&self->wake, 0, __ATOMIC_RELAXED);
    self->blocked = true;
    if (list != NULL) {
        wait_list_insert(list, self);
    }
    traceTASK_SWITCHED_OUT();
    unlock();
    sleep_until_woken(self, deadline_us);
    lock();
    self->blocked = false;
    wait_list_remove(self);
    park_outside_lock(self);
    bool woken = __atomic_load_n(&self->wake, __ATOMIC_RELAXED) != 0;
    if (!woken) { /* Linux's timer made it ready, and told nobody */
        traceMOVED_TASK_TO_READY_STATE(self);
    }
    traceTASK_SWITCHED_IN();
    return woken;
}

void kernel_wake(task_t *task) {
    wait_list_remove(task);
    if (!task->blocked || __atomic_load_n(&task->wake, __ATOMIC_RELAXED) != 0) {
        return;
    }
    s_woke = s_woke || kernel_would_switch_to(task, task->priority);
    __atomic_store_n(&task->wake, 1, __ATOMIC_RELEASE);
    traceMOVED_TASK_TO_READY_STATE(task);
    if (s_wake_count == DEFERRED_WAKES) {
        port_futex_wake(&task->wake, 1);
        return;
    }
    s_wakes[s_wake_count++] = &task->wake;
}

static bool may_run_on(const task_t *task, BaseType_t core) {
    return task->core == core || task->core == tskNO_AFFINITY;
}

static bool is_ready_on(const task_t *task, BaseType_t core) {
    if (task->blocked || !may_run_on(task, core)) {
        return false;
    }
    if (__atomic_load_n(&task->raising, __ATOMIC_RELAXED) && task->core == core) {
        return true;
    }
    thread_state_t state = port_thread_state(task); /* it may wait in a library, or run on another core */
    return state.ready && state.core == core;
}

bool kernel_would_switch_to(const task_t *task, UBaseType_t priority) {
    const task_t *self = task_self();
    if (!self->isr) {
        return priority > self->priority && (task->core == self->core || may_run_on(task, xPortGetCoreID()));
    }
    bool outranks = may_run_on(task, self->core);
    for (const task_t *other = all_tasks; other != NULL && outranks; other = other->all_next) {
        bool below = other->priority < priority && other->scheduler_suspended == 0;
        outranks = other == task || below || !is_ready_on(other, self->core);
    }
    return outranks;
}

void kernel_tell_woken(BaseType_t *woken) {
    if (s_woke && woken != NULL) {
        *woken = pdTRUE;
    }
}

void kernel_wake_first(wait_list_t *list) {
    if (list->head != NULL) {
        kernel_wake(list->head);
    }
}

void kernel_wake_all(wait_list_t *list) {
    while (list->head != NULL) {
        kernel_wake(list->head);
    }
}

int64_t tick_count_now(void) {
    return vboard_uptime_us() / TICK_US;
}

int64_t ticks_deadline_us(TickType_t ticks) {
    return ticks == portMAX_DELAY ? NEVER_US : (tick_count_now() + ticks) * TICK_US;
}
