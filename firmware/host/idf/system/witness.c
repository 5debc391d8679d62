/* SPDX-License-Identifier: Apache-2.0 */
/* The witness of the host's lateness: a thread a core that no task and no interrupt of the board can hold up.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <time.h>

#include "../kernel/kernel.h"
#include "freertos/task.h"
#include "interrupt.h"
#include "spells.h"
#include "vboard.h"

/* Between the ticks, at which tasks wake: at the ticks it would hold up those whose lateness is measured. */
#define PERIOD_US 500
#define PHASE_US 250
#define NOTED_US 100

typedef struct {
    pthread_t thread;
    spells_t spells;
} watch_t;

static watch_t s_watches[portNUM_PROCESSORS];
static sem_t s_awake;
static bool s_watching;

static void sleep_until(int64_t due_us) {
    int64_t monotonic_us = vboard_monotonic_us(due_us);
    const struct timespec at = {.tv_sec = monotonic_us / 1000000, .tv_nsec = monotonic_us % 1000000 * 1000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) != 0) {
    }
}

static int64_t next_due_us(int64_t now_us) {
    return ((now_us - PHASE_US) / PERIOD_US + 1) * PERIOD_US + PHASE_US;
}

static void *keep_watch(void *argument) {
    watch_t *watch = argument;
    port_started();
    int64_t due_us = next_due_us(vboard_uptime_us());
    sem_post(&s_awake);
    while (__atomic_load_n(&s_watching, __ATOMIC_ACQUIRE)) {
        sleep_until(due_us);
        int64_t now_us = vboard_uptime_us();
        if (now_us - due_us >= NOTED_US) {
            spells_note(&watch->spells, (spell_t){due_us, now_us});
        }
        due_us = next_due_us(now_us);
    }
    port_before_end();
    return NULL;
}

void vboard_witness_start(void) {
    vboard_witness_stop();
    sem_init(&s_awake, 0, 0);
    __atomic_store_n(&s_watching, true, __ATOMIC_RELEASE);
    for (int core = 0; core < portNUM_PROCESSORS; core++) {
        watch_t *watch = &s_watches[core];
        spells_clear(&watch->spells);
        watch->thread = interrupt_start_thread(WITNESS_PRIORITY, core, keep_watch, watch);
    }
    for (int core = 0; core < portNUM_PROCESSORS; core++) {
        while (sem_wait(&s_awake) != 0) {
        }
    }
}

void vboard_witness_stop(void) {
    if (!__atomic_exchange_n(&s_watching, false, __ATOMIC_ACQ_REL)) {
        return;
    }
    for (int core = 0; core < portNUM_PROCESSORS; core++) {
        pthread_join(s_watches[core].thread, NULL);
    }
    sem_destroy(&s_awake);
}

uint32_t vboard_witness_count(void) {
    uint32_t count = 0;
    for (int core = 0; core < portNUM_PROCESSORS; core++) {
        count += s_watches[core].spells.seen;
    }
    return count;
}

uint32_t vboard_witness_late_us(int core, int64_t from_us, int64_t until_us) {
    uint32_t worst_us = 0;
    for (int i = 0; i < portNUM_PROCESSORS; i++) {
        if (core == tskNO_AFFINITY || core == i) {
            uint32_t late_us = spells_worst_us(&s_watches[i].spells, from_us, until_us);
            worst_us = late_us > worst_us ? late_us : worst_us;
        }
    }
    return worst_us;
}
