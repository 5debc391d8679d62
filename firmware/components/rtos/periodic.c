/* SPDX-License-Identifier: Apache-2.0 */
#include "rtos/periodic.h"

#include "agent/watch.h"
#include "trace/trace.h"

enum {
    LEAD_WAKES = 2,        /* before the first row: caches are warm, and the interval before it is known */
    HELD_BEFORE_US = 1000, /* a lock that was held when the task woke was taken no longer before */
};

const char *const rtos_traces[] = {"off", "outlier", "end", NULL};

static void set(const rtos_periodic_t *p, size_t row, rtos_periodic_column_t column, uint32_t value) {
    bench_samples_set(p->samples, row, column, value);
}

static uint32_t since_t0(const rtos_periodic_t *p, int64_t us) {
    return (uint32_t)(us - p->t0_us);
}

/* ---- the task ---- */

/* True once the lock was had, and given back; at once where there is none. */
static bool use_resource(const rtos_periodic_t *p, int64_t woke_us, int64_t *acquired_us) {
    *acquired_us = woke_us;
    if (p->contention.lock == NULL) {
        return true;
    }
    const bool taken = xSemaphoreTake(p->contention.lock, pdMS_TO_TICKS(p->wake.timeout_us / 1000)) == pdTRUE;
    *acquired_us = esp_timer_get_time();
    if (taken) {
        xSemaphoreGive(p->contention.lock);
    }
    return taken;
}

static void mark_wake(const rtos_periodic_t *p, uint32_t late_us) {
    if (p->trace != RTOS_TRACE_OFF) {
        trace_mark(TRACE_MARK_PLANNED, late_us);
        trace_mark(TRACE_MARK_WOKE, late_us);
    }
}

static void mark_acquired(rtos_periodic_t *p, size_t row, uint32_t late_us, uint32_t waited_us) {
    if (p->trace == RTOS_TRACE_OFF) {
        return;
    }
    if (p->contention.lock != NULL) {
        trace_mark(TRACE_MARK_ACQUIRED, waited_us);
    }
    const uint32_t worst_us = late_us > waited_us ? late_us : waited_us;
    const bool counts = p->trace == RTOS_TRACE_OUTLIER && !p->frozen && row >= p->warmup_rows;
    if (counts && worst_us > p->break_us) {
        trace_mark(TRACE_MARK_OUTLIER, worst_us);
        trace_freeze(RTOS_TRACE_EVENTS_AFTER);
        p->frozen = true;
    }
}

static void store_interval(const rtos_periodic_t *p, size_t row, rtos_stamp_t begin, rtos_stamp_t end) {
    const uint32_t interval_us = rtos_common_us(begin, end), period_us = p->wake.period_us;
    set(p, row, RTOS_PERIODIC_RAW, rtos_raw_cycles(begin, end));
    set(p, row, RTOS_PERIODIC_CORRECTED, rtos_corrected_ns(&p->clocks, begin, end));
    set(p, row, RTOS_PERIODIC_INTERVAL, interval_us);
    set(p, row, RTOS_PERIODIC_DEVIATION,
        interval_us > period_us ? interval_us - period_us : period_us - interval_us);
    set(p, row, RTOS_PERIODIC_START_CORE, begin.core);
    set(p, row, RTOS_PERIODIC_END_CORE, end.core);
}

static void store_wake(rtos_periodic_t *p, size_t row, rtos_stamp_t begin, rtos_stamp_t end) {
    const int64_t planned_us = rtos_wake_planned_us(&p->wake), isr_us = rtos_wake_isr_us(&p->wake);
    /* A grid known to within a microsecond or two may put a plan behind its wake. */
    const int64_t woke_us = end.us > planned_us ? end.us : planned_us;
    const uint32_t late_us = (uint32_t)(woke_us - planned_us);
    int64_t acquired_us = 0;
    mark_wake(p, late_us);
    const bool acquired = use_resource(p, woke_us, &acquired_us);
    acquired_us = acquired_us > woke_us ? acquired_us : woke_us;
    mark_acquired(p, row, late_us, (uint32_t)(acquired_us - woke_us));
    store_interval(p, row, begin, end);
    set(p, row, RTOS_PERIODIC_WOKE, since_t0(p, woke_us));
    set(p, row, RTOS_PERIODIC_ACQUIRED, since_t0(p, acquired_us));
    set(p, row, RTOS_PERIODIC_ISR, isr_us != 0 ? since_t0(p, isr_us > planned_us ? isr_us : planned_us) : 0);
    set(p, row, RTOS_PERIODIC_OUTCOME,
        acquired && late_us <= p->wake.timeout_us ? RTOS_OUTCOME_OK : RTOS_OUTCOME_NOT_DONE);
    p->moments[row] = (rtos_moments_t){.woke_us = woke_us, .acquired_us = acquired_us};
}

static void run_periods(rtos_periodic_t *p) {
    rtos_stamp_t begin = rtos_stamp_begin();
    for (size_t wake = 0; wake < p->rows + LEAD_WAKES && rtos_wake_wait(&p->wake) == RTOS_WAKE_OK; wake++) {
        const rtos_stamp_t end = rtos_stamp_end();
        if (wake >= LEAD_WAKES) {
            store_wake(p, wake - LEAD_WAKES, begin, end);
        }
        begin = end; /* the very moment: before a second reading another task may run */
        rtos_load_after_wake(&p->load);
    }
}

void rtos_periodic_run(void *context) {
    rtos_periodic_t *p = context;
    rtos_load_begin(&p->load);
    p->error = rtos_wake_start(&p->wake);
    bench_cpu_load_begin(); /* looking for the tick's edge is no load */
    if (p->error == ESP_OK) {
        run_periods(p);
    }
    bench_cpu_load_end();
    if (p->trace == RTOS_TRACE_END && p->last) {
        trace_freeze(0);
        p->frozen = true;
    }
    rtos_wake_stop(&p->wake);
    p->contention.over = true;
    rtos_load_end(&p->load);
}

/* ---- afterwards ---- */

static uint32_t worst(uint32_t a, uint32_t b) {
    return a > b ? a : b;
}

/* The host counts from the plan on, and at the wake before, from which the interval counts. Another task may
 * be what a row waited for, on any core: the timer's, or low. */
void rtos_periodic_judge(const rtos_periodic_t *p) {
    const bool shares = p->contention.lock != NULL;
    const bool alone = p->wake.source != RTOS_WAKE_ESP_TIMER && !shares;
    uint32_t late_before_us = 0;
    for (size_t row = 0; row < p->rows; row++) {
        const int64_t planned_us = p->wake.first_us + (int64_t)(row + LEAD_WAKES) * p->wake.period_us;
        const rtos_moments_t *moments = &p->moments[row];
        set(p, row, RTOS_PERIODIC_PLANNED, since_t0(p, planned_us));
        if (moments->woke_us == 0) {
            set(p, row, RTOS_PERIODIC_OUTCOME, RTOS_OUTCOME_NOT_DONE);
            continue;
        }
        const uint32_t late_us =
            bench_watch_late_us(alone ? p->core : tskNO_AFFINITY, planned_us - (shares ? HELD_BEFORE_US : 0),
                                moments->acquired_us);
        set(p, row, RTOS_PERIODIC_HOST_LATE, worst(late_us, late_before_us));
        if (p->void_late_us != 0 && worst(late_us, late_before_us) >= p->void_late_us) {
            set(p, row, RTOS_PERIODIC_OUTCOME, RTOS_OUTCOME_VOID);
        }
        late_before_us = late_us;
    }
}
