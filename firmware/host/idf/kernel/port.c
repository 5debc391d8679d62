/* SPDX-License-Identifier: Apache-2.0 */
/* Cores, priorities, spinlocks and futexes. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <openssl/crypto.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "esp_cpu.h"
#include "kernel.h"
#include "vboard.h"

/* FreeRTOS 0..24 becomes real-time 1..25, below an air emulator at 60 and kernel threads at 50. */
#define LOWEST_LINUX_PRIORITY 1

#define GROWTH_BYTES (64U * 1024U * 1024U)

#define STAT_PROCESSOR 39 /* of the fields of /proc/…/stat, counted from 1 */

static unsigned s_cpus[portNUM_PROCESSORS];
static bool s_realtime;

static bool read_text(const char *path, char *text, size_t bytes) {
    long fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC); /* read() and close() are lwIP's */
    long got = fd >= 0 ? syscall(SYS_read, fd, text, bytes - 1) : -1;
    if (fd >= 0) {
        syscall(SYS_close, fd);
    }
    text[got > 0 ? got : 0] = '\0';
    return got > 0;
}

static bool realtime_permitted(void) {
    struct sched_param before;
    int policy;
    pthread_getschedparam(pthread_self(), &policy, &before);
    const struct sched_param probe = {.sched_priority = port_linux_priority(configMAX_PRIORITIES - 1)};
    if (pthread_setschedparam(pthread_self(), SCHED_FIFO, &probe) != 0) {
        return false;
    }
    pthread_setschedparam(pthread_self(), policy, &before);
    return true;
}

/* Core n is the n-th CPU this process may use; a machine with one CPU gives both cores the same. */
static void choose_cpus(void) {
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    sched_getaffinity(0, sizeof allowed, &allowed);
    int found = 0;
    for (unsigned cpu = 0; cpu < CPU_SETSIZE && found < portNUM_PROCESSORS; cpu++) {
        if (CPU_ISSET(cpu, &allowed)) {
            s_cpus[found++] = cpu;
        }
    }
    for (; found > 0 && found < portNUM_PROCESSORS; found++) {
        s_cpus[found] = s_cpus[0];
    }
}

/* With a limit on locked memory the lock may succeed now and refuse every later stack: then rather none. */
static bool may_grow(void) {
    void *probe = mmap(NULL, GROWTH_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (probe == MAP_FAILED) {
        return false;
    }
    munmap(probe, GROWTH_BYTES);
    return true;
}

/* A page fault in a task costs more than most of what is measured. Refused without privilege. */
static void lock_memory(void) {
    if (mlockall(MCL_CURRENT | MCL_FUTURE) == 0 && !may_grow()) {
        munlockall();
    }
}

void port_init(void) {
    choose_cpus();
    s_realtime = realtime_permitted();
    prctl(PR_SET_TIMERSLACK, 1UL);
    lock_memory();
}

#if defined(__SANITIZE_ADDRESS__)
/* It keeps each new stack that allocates under a lock that it spins on: who preempts the owner, with
 * real-time priority, would spin for ever. With two frames, the least that finds leaks, new stacks are as few
 * as places that allocate. For more: ASAN_OPTIONS=malloc_context_size=30, without real-time priority. */
const char *__asan_default_options(void);

const char *__asan_default_options(void) {
    return "malloc_context_size=2:quarantine_size_mb=16";
}

/* A thread asks its attributes before its stack is known: if the program ended there, they would be a leak.
 */
static uint32_t s_starting;

static void await_starts(void) {
    uint32_t starting;
    while ((starting = __atomic_load_n(&s_starting, __ATOMIC_ACQUIRE)) != 0) {
        port_futex_wait(&s_starting, starting, NEVER_US);
    }
}

static void await_starts_at_exit(void) {
    atexit(await_starts);
}

void port_before_start(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, await_starts_at_exit);
    __atomic_add_fetch(&s_starting, 1, __ATOMIC_ACQ_REL);
}

void port_started(void) {
    if (__atomic_sub_fetch(&s_starting, 1, __ATOMIC_ACQ_REL) == 0) {
        port_futex_wake(&s_starting, INT32_MAX);
    }
}

/* The program may exit before the thread has ended, and what the thread would have freed then is a leak. */
void port_free_thread_locals(void) {
    OPENSSL_thread_stop();
}

/* A thread that ends gives back what it freed, under another such lock. */
void port_before_end(void) {
    const struct sched_param none = {0};
    pthread_setschedparam(pthread_self(), SCHED_OTHER, &none);
}
#else
void port_before_start(void) {
}

void port_started(void) {
}

void port_free_thread_locals(void) {
}

void port_before_end(void) {
}
#endif

bool port_realtime(void) {
    return s_realtime;
}

const char *vboard_sched_name(void) {
    (void)task_self();
    return s_realtime ? "fifo" : "other";
}

int port_linux_priority(UBaseType_t priority) {
    return LOWEST_LINUX_PRIORITY + (int)priority;
}

void port_fill_attributes(pthread_attr_t *attributes, int linux_priority, BaseType_t core) {
    bool realtime = s_realtime && linux_priority > 0;
    const struct sched_param param = {.sched_priority = realtime ? linux_priority : 0};
    pthread_attr_setinheritsched(attributes, PTHREAD_EXPLICIT_SCHED);
    pthread_attr_setschedpolicy(attributes, realtime ? SCHED_FIFO : SCHED_OTHER);
    pthread_attr_setschedparam(attributes, &param);
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    for (int i = 0; i < portNUM_PROCESSORS; i++) {
        if (core == tskNO_AFFINITY || core == i) {
            CPU_SET(s_cpus[i], &cpus);
        }
    }
    pthread_attr_setaffinity_np(attributes, sizeof cpus, &cpus);
}

/* A new task goes behind the ready ones of its priority, and one without affinity to a core that has nothing
 * more urgent. Linux does so with a thread that becomes real-time; one that is made with its priority is put
 * before the others, as its creator's was higher, and stays with its creator's CPU. */
void port_give_priority(task_t *task) {
    const struct sched_param param = {.sched_priority = port_linux_priority(task->priority)};
    if (s_realtime) {
        pthread_setschedparam(task->thread, SCHED_FIFO, &param);
    }
}

void port_apply_priority(task_t *task, int linux_priority) {
    if (s_realtime && task->thread_known && !task->adopted) {
        pthread_setschedprio(task->thread, linux_priority);
    }
}

BaseType_t xPortGetCoreID(void) {
    const task_t *self = task_self();
    if (self->core != tskNO_AFFINITY) {
        return self->core;
    }
    unsigned cpu = (unsigned)sched_getcpu();
    for (int i = portNUM_PROCESSORS - 1; i > 0; i--) {
        if (cpu == s_cpus[i]) {
            return i;
        }
    }
    return 0;
}

int esp_cpu_get_core_id(void) {
    return xPortGetCoreID();
}

BaseType_t xPortInIsrContext(void) {
    return task_self()->isr ? pdTRUE : pdFALSE;
}

BaseType_t xPortInterruptedFromISRContext(void) {
    return xPortInIsrContext();
}

void vPortYield(void) {
    sched_yield();
}

/* Linux's own words of a thread: 600 bytes, of which the name, which may hold anything, ends at the last ')'.
 */
thread_state_t port_thread_state(const task_t *task) {
    thread_state_t state = {.core = tskNO_AFFINITY};
    char path[64], text[2048];
    snprintf(path, sizeof path, "/proc/self/task/%d/status", (int)task->tid);
    if (read_text(path, text, sizeof text)) {
        const char *waits = strstr(text, "\nvoluntary_ctxt_switches:");
        state.waits = waits != NULL ? strtoull(strchr(waits, ':') + 1, NULL, 10) : 0;
    }
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)task->tid);
    const char *field = read_text(path, text, sizeof text) ? strrchr(text, ')') : NULL;
    if (field == NULL || field[1] == '\0') {
        return state;
    }
    state.ready = field[2] == 'R';
    for (int number = 2; number < STAT_PROCESSOR && field != NULL; number++) {
        field = strchr(field + 1, ' ');
    }
    unsigned cpu = field != NULL ? (unsigned)strtoul(field, NULL, 10) : UINT_MAX;
    for (int i = portNUM_PROCESSORS - 1; i >= 0; i--) {
        state.core = cpu == s_cpus[i] ? i : state.core;
    }
    if (task->core != tskNO_AFFINITY) {
        state.core = task->core; /* also where all cores are one CPU */
    }
    return state;
}

int64_t port_cpu_time_ns(const task_t *task) {
    clockid_t clock;
    struct timespec used;
    if (!task->thread_known || pthread_getcpuclockid(task->thread, &clock) != 0 ||
        clock_gettime(clock, &used) != 0) {
        return 0;
    }
    return (int64_t)used.tv_sec * 1000000000 + used.tv_nsec;
}

static long futex(uint32_t *word, int operation, uint32_t value, const struct timespec *timeout) {
    return syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, timeout, NULL,
                   FUTEX_BITSET_MATCH_ANY);
}

/* 0, EAGAIN, EINTR or ETIMEDOUT. */
long port_futex_wait(uint32_t *word, uint32_t value, int64_t deadline_us) {
    struct timespec at;
    const struct timespec *timeout = NULL;
    if (deadline_us != NEVER_US) {
        int64_t monotonic_us = vboard_monotonic_us(deadline_us);
        monotonic_us = monotonic_us < 0 ? 0 : monotonic_us;
        at.tv_sec = monotonic_us / 1000000;
        at.tv_nsec = monotonic_us % 1000000 * 1000;
        timeout = &at;
    }
    return futex(word, FUTEX_WAIT_BITSET, value, timeout) == 0 ? 0 : errno;
}

void port_futex_wake(uint32_t *word, int count) {
    (void)futex(word, FUTEX_WAKE, (uint32_t)count, NULL);
}

static bool take_free(portMUX_TYPE *mux, uint32_t tid) {
    uint32_t free_word = 0;
    return __atomic_compare_exchange_n(&mux->owner, &free_word, tid, false, __ATOMIC_ACQUIRE,
                                       __ATOMIC_RELAXED);
}

static bool owned_by(const portMUX_TYPE *mux, uint32_t tid) {
    return (__atomic_load_n(&mux->owner, __ATOMIC_RELAXED) & FUTEX_TID_MASK) == tid;
}

static void taken(portMUX_TYPE *mux) {
    (void)__atomic_load_n(&mux->version, __ATOMIC_ACQUIRE);
    mux->count = 1;
}

/* Written by the task itself, looked at by the watchdogs. */
void port_mask(task_t *self) {
    if (self->masked == 0) {
        __atomic_store_n(&self->masked_entries, self->masked_entries + 1, __ATOMIC_RELAXED);
    }
    __atomic_store_n(&self->masked, self->masked + 1, __ATOMIC_RELEASE);
}

void port_unmask(task_t *self) {
    __atomic_store_n(&self->masked, self->masked - 1, __ATOMIC_RELAXED);
}

void vPortEnterCritical(portMUX_TYPE *mux) {
    task_t *self = task_self();
    defer_requests(self);
    uint32_t tid = (uint32_t)self->tid;
    if (owned_by(mux, tid)) {
        mux->count++;
        port_mask(self);
        return;
    }
    while (!take_free(mux, tid) && futex(&mux->owner, FUTEX_LOCK_PI, 0, NULL) != 0) {
        assert(errno == EINTR || errno == EAGAIN);
    }
    taken(mux);
    port_mask(self);
}

/* Any timeout but portMUX_NO_TIMEOUT means: try once. */
BaseType_t xPortEnterCriticalTimeout(portMUX_TYPE *mux, BaseType_t timeout) {
    task_t *self = task_self();
    if (timeout == portMUX_NO_TIMEOUT || owned_by(mux, (uint32_t)self->tid)) {
        vPortEnterCritical(mux);
        return pdPASS;
    }
    defer_requests(self);
    if (!take_free(mux, (uint32_t)self->tid)) {
        undefer_requests(self);
        return pdFAIL;
    }
    taken(mux);
    port_mask(self);
    return pdPASS;
}

void vPortExitCritical(portMUX_TYPE *mux) {
    task_t *self = task_self();
    uint32_t tid = (uint32_t)self->tid;
    assert(owned_by(mux, tid) && mux->count > 0);
    port_unmask(self);
    if (--mux->count == 0) {
        __atomic_fetch_add(&mux->version, 1, __ATOMIC_RELEASE);
        if (!__atomic_compare_exchange_n(&mux->owner, &tid, 0, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
            futex(&mux->owner, FUTEX_UNLOCK_PI, 0, NULL);
        }
    }
    undefer_requests(self);
}
