/* SPDX-License-Identifier: Apache-2.0 */
#include "rtos/cyclic.h"

#include "agent/watch.h"
#include "rtos/round.h"
#include "trace/trace.h"

enum { EVENTS_AFTER = 64 }; /* that the trace keeps after what it froze for */

static void mark(uint32_t late_us) {
    trace_mark(TRACE_MARK_PLANNED, late_us);
    trace_mark(TRACE_MARK_WOKE, late_us);
}

static void check_break(const rtos_cyclic_t *cyclic, uint32_t late_us) {
    rtos_cyclic_break_t *limit = cyclic->limit;
    if (late_us <= limit->break_us || atomic_flag_test_and_set(&limit->taken)) {
        return;
    }
    trace_mark(TRACE_MARK_OUTLIER, late_us);
    trace_freeze(EVENTS_AFTER);
    limit->thread = cyclic->index;
    limit->loop = cyclic->done;
    limit->late_us = late_us;
    limit->broken = true;
    *limit->stop = true;
}

static void count(rtos_cyclic_t *cyclic, int64_t planned_us, uint32_t late_us) {
    cyclic->histogram.counts[rtos_histogram_bucket(late_us)]++;
    cyclic->done++;
    if (late_us < RTOS_CYCLIC_NOTED_US) {
        return;
    }
    if (cyclic->noted < RTOS_CYCLIC_NOTES) {
        cyclic->notes[cyclic->noted++] = (rtos_cyclic_note_t){.planned_us = planned_us, .late_us = late_us};
    } else {
        cyclic->unjudged++;
    }
}

static void run_loops(rtos_cyclic_t *cyclic) {
    const uint32_t loops = cyclic->loops + cyclic->warmup_loops;
    for (uint32_t loop = 0; loop < loops && rtos_wake_wait(&cyclic->wake) == RTOS_WAKE_OK; loop++) {
        const int64_t now_us = esp_timer_get_time(), planned_us = rtos_wake_planned_us(&cyclic->wake);
        const uint32_t late_us = now_us > planned_us ? (uint32_t)(now_us - planned_us) : 0;
        if (loop < cyclic->warmup_loops) {
            continue;
        }
        count(cyclic, planned_us, late_us);
        if (cyclic->limit->break_us != 0) {
            mark(late_us);
            check_break(cyclic, late_us);
        }
    }
}

void rtos_cyclic_run(void *context) {
    rtos_cyclic_t *cyclic = context;
    cyclic->error = rtos_wake_start(&cyclic->wake);
    if (cyclic->error == ESP_OK) {
        run_loops(cyclic);
    } else {
        *cyclic->limit->stop = true;
    }
    rtos_wake_stop(&cyclic->wake);
}

void rtos_cyclic_judge(rtos_cyclic_t *cyclic, uint32_t void_late_us) {
    const BaseType_t core = cyclic->wake.source == RTOS_WAKE_ESP_TIMER ? tskNO_AFFINITY : cyclic->core;
    for (uint32_t i = 0; i < cyclic->noted && void_late_us != 0; i++) {
        rtos_cyclic_note_t *note = &cyclic->notes[i];
        const uint32_t host_late_us =
            bench_watch_late_us(core, note->planned_us, note->planned_us + note->late_us);
        if (host_late_us >= void_late_us) {
            note->void_us = host_late_us;
            cyclic->histogram.counts[rtos_histogram_bucket(note->late_us)]--;
        }
    }
}

void rtos_cyclic_each_row(const rtos_cyclic_t *cyclic, rtos_cyclic_row_cb_t row, void *context) {
    for (size_t bucket = 0; bucket < RTOS_HISTOGRAM_BUCKETS; bucket++) {
        const uint32_t loops = cyclic->histogram.counts[bucket];
        if (loops > 0) {
            row(context, cyclic, &(rtos_cyclic_row_t){rtos_histogram_us(bucket), loops, 0, RTOS_OUTCOME_OK});
        }
    }
    for (uint32_t i = 0; i < cyclic->noted; i++) {
        const rtos_cyclic_note_t *note = &cyclic->notes[i];
        if (note->void_us > 0) {
            row(context, cyclic, &(rtos_cyclic_row_t){note->late_us, 1, note->void_us, RTOS_OUTCOME_VOID});
        }
    }
    if (cyclic->done < cyclic->loops) {
        row(context, cyclic, &(rtos_cyclic_row_t){0, cyclic->loops - cyclic->done, 0, RTOS_OUTCOME_NOT_DONE});
    }
}
