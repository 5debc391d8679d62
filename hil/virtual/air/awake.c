/* SPDX-License-Identifier: Apache-2.0 */
#include "awake.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

static _Atomic uint64_t s_deadline_ns;
static pthread_mutex_t s_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t s_changed = PTHREAD_COND_INITIALIZER;
static bool s_started;

static bool wanted(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec < atomic_load(&s_deadline_ns);
}

static void *keep_awake(void *unused) {
    (void)unused;
    struct sched_param none = {0};
    if (sched_setscheduler(0, SCHED_IDLE, &none) != 0) {
        return NULL; /* at any other priority it would take time from those who measure */
    }
    for (;;) {
        pthread_mutex_lock(&s_mutex);
        while (!wanted()) {
            pthread_cond_wait(&s_changed, &s_mutex);
        }
        pthread_mutex_unlock(&s_mutex);
        while (wanted()) {
        }
    }
    return NULL;
}

static bool start_on(size_t cpu) {
    pthread_attr_t attributes;
    pthread_t thread;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    pthread_attr_init(&attributes);
    pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED); /* not the air's real-time priority */
    pthread_attr_setaffinity_np(&attributes, sizeof(set), &set);
    bool started = pthread_create(&thread, &attributes, keep_awake, NULL) == 0;
    pthread_attr_destroy(&attributes);
    return started;
}

static bool start(void) {
    cpu_set_t allowed;
    bool complete = sched_getaffinity(0, sizeof(allowed), &allowed) == 0;
    for (size_t cpu = 0; complete && cpu < CPU_SETSIZE; cpu++) {
        complete = !CPU_ISSET(cpu, &allowed) || start_on(cpu);
    }
    return complete;
}

bool awake_until(uint64_t deadline_ns) {
    if (!s_started && deadline_ns > 0) {
        s_started = start();
    }
    pthread_mutex_lock(&s_mutex);
    atomic_store(&s_deadline_ns, deadline_ns);
    pthread_cond_broadcast(&s_changed);
    pthread_mutex_unlock(&s_mutex);
    return s_started;
}
