/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "watchdogs.h"

#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "interrupt.h"
#include "panic.h"
#include "sdkconfig.h"
#include "strict.h"
#include "task_wdt.h"
#include "vboard.h"

#define PERIOD_US 50000
#define PHASE_US 250       /* behind a tick, as the witness */
#define LOOKS_AT_IDLE 20   /* one of so many: each second */
#define NOTED_NS 100000000 /* of CPU time since the last such look: of the others nothing is asked */
#define MS_NS INT64_C(1000000)

#if CONFIG_ESP_INT_WDT
#define INTERRUPT_TIMEOUT_MS CONFIG_ESP_INT_WDT_TIMEOUT_MS
#else
#define INTERRUPT_TIMEOUT_MS 0
#endif
#if CONFIG_ESP_INT_WDT_CHECK_CPU1
#define INTERRUPT_CORES 3U
#else
#define INTERRUPT_CORES 1U
#endif

static task_t s_self = {
    .name = "watchdogs", .adopted = true, .core = tskNO_AFFINITY, .priority = WITNESS_PRIORITY};
static task_t *s_interrupts;

void watchdogs_add(task_t *interrupt) {
    task_t *self = kernel_enter();
    interrupt->all_next = s_interrupts;
    s_interrupts = interrupt;
    kernel_leave(self);
}

void watchdogs_remove(task_t *interrupt) {
    task_t *self = kernel_enter();
    for (task_t **link = &s_interrupts; *link != NULL; link = &(*link)->all_next) {
        if (*link == interrupt) {
            *link = interrupt->all_next;
            break;
        }
    }
    kernel_leave(self);
}

/* ---- masked interrupts; in the kernel, so that no thread ends meanwhile ---- */

static void bark(task_t *task, int64_t used_ns) {
    if (strict_is_violated(
            STRICT_LONG_CRITICAL, task,
            "interrupts were masked for %lld ms of CPU time in %s: a chip's interrupt watchdog "
            "resets it after %d ms",
            (long long)(used_ns / MS_NS), task->name, INTERRUPT_TIMEOUT_MS)) {
        pthread_kill(task->thread, PANIC_INTERRUPT_WATCHDOG);
    }
}

static bool is_watched(const task_t *task) {
    BaseType_t core = task->core != tskNO_AFFINITY ? task->core : 0;
    return INTERRUPT_TIMEOUT_MS > 0 && (INTERRUPT_CORES >> core & 1U) != 0;
}

static void look_at_masked(task_t *task) {
    watched_t *watch = &task->watch;
    uint32_t entries = __atomic_load_n(&task->masked_entries, __ATOMIC_RELAXED);
    if (__atomic_load_n(&task->masked, __ATOMIC_ACQUIRE) == 0 || !is_watched(task)) {
        watch->masked = false;
    } else if (!watch->masked || watch->masked_entries != entries) {
        watch->masked = true;
        watch->masked_entries = entries;
        watch->masked_from_ns = port_cpu_time_ns(task);
    } else {
        int64_t used_ns = port_cpu_time_ns(task) - watch->masked_from_ns;
        if (used_ns >= INTERRUPT_TIMEOUT_MS * MS_NS) {
            bark(task, used_ns);
        }
    }
}

static void look_at_all_masked(void) {
    task_t *self = kernel_enter();
    for (task_t *task = all_tasks; task != NULL; task = task->all_next) {
        look_at_masked(task);
    }
    for (task_t *task = s_interrupts; task != NULL; task = task->all_next) {
        look_at_masked(task);
    }
    kernel_leave(self);
}

/* ---- idle tasks ---- */

/* What a task computed since it last waited, while its core stayed the same. A task of priority 0 takes turns
 * with the idle task. */
static void note_hogging(task_t *task) {
    watched_t *watch = &task->watch;
    int64_t now_ns = port_cpu_time_ns(task);
    int64_t used_ns = now_ns - watch->seen_ns;
    watch->seen_ns = now_ns;
    if (task->priority == 0 || (used_ns < NOTED_NS && watch->hogging_ns == 0)) {
        watch->hogging_ns = 0;
        watch->waits = UINT64_MAX;
        return;
    }
    thread_state_t state = port_thread_state(task);
    bool same = state.waits == watch->waits && state.core == watch->core && state.core != tskNO_AFFINITY;
    watch->hogging_ns = same ? watch->hogging_ns + used_ns : 0;
    watch->waits = state.waits;
    watch->core = state.core;
}

typedef struct {
    BaseType_t core; /* tskNO_AFFINITY where none is */
    const void *task;
    char name[configMAX_TASK_NAME_LEN];
} starved_t;

/* The first core whose idle task is watched and did not run; who kept it from that starts anew. */
static starved_t find_starved(idle_watch_t idle) {
    starved_t starved = {.core = tskNO_AFFINITY};
    task_t *self = kernel_enter();
    for (task_t *task = all_tasks; task != NULL; task = task->all_next) {
        note_hogging(task);
        if (starved.core == tskNO_AFFINITY && task->watch.hogging_ns >= idle.timeout_ms * MS_NS &&
            (idle.core_mask >> task->watch.core & 1U) != 0) {
            starved = (starved_t){.core = task->watch.core, .task = task};
            memcpy(starved.name, task->name, sizeof starved.name);
            task->watch.hogging_ns = 0;
        }
    }
    kernel_leave(self);
    return starved;
}

static void look_at_idle(void) {
    idle_watch_t idle = task_wdt_idle_watch();
    starved_t starved = find_starved(idle);
    if (starved.core != tskNO_AFFINITY && idle.core_mask != 0 &&
        strict_is_violated(
            STRICT_IDLE, starved.task,
            "task %s computed for %lld ms without a wait on core %d: a chip's idle task starves, "
            "and its task watchdog says so",
            starved.name, (long long)idle.timeout_ms, (int)starved.core)) {
        task_wdt_trigger_idle(starved.core, starved.name);
    }
}

/* ---- */

static void sleep_until_next(void) {
    int64_t due_us = ((vboard_uptime_us() - PHASE_US) / PERIOD_US + 1) * PERIOD_US + PHASE_US;
    int64_t monotonic_us = vboard_monotonic_us(due_us);
    const struct timespec at = {.tv_sec = monotonic_us / 1000000, .tv_nsec = monotonic_us % 1000000 * 1000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) != 0) {
    }
}

static void *keep_watch(void *argument) {
    (void)argument;
    port_started();
    s_self.tid = gettid();
    s_self.thread = pthread_self();
    s_self.thread_known = true;
    task_adopt(&s_self);
    for (unsigned looks = 1;; looks++) {
        sleep_until_next();
        look_at_all_masked();
        if (looks % LOOKS_AT_IDLE == 0) {
            look_at_idle();
        }
    }
    return NULL;
}

void watchdogs_start(void) {
    pthread_detach(interrupt_start_thread(WITNESS_PRIORITY, tskNO_AFFINITY, keep_watch, NULL));
}
