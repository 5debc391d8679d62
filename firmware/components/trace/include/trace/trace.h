/* SPDX-License-Identifier: Apache-2.0 */
/* What the scheduler did: a ring of its last events, kept while a bench runs and frozen when something was
 * late.
 *
 * Events come from FreeRTOS's trace macros (hooks.h), which the build puts before the kernel's own headers,
 * and from marks that a bench sets. A ring that is not started costs a read of one flag an event.
 */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { TRACE_EVENTS = 1024 }; /* 12 bytes each, on the heap from the first trace on */

/* What the agent sends of an event (`run trace`, docs/explain/tracing.md). Numbers stay as they are: hosts
 * know them.
 */
typedef enum {
    TRACE_SWITCHED_IN = 1,  /* the task runs on the core from now on */
    TRACE_SWITCHED_OUT = 2, /* it does not any more: it waits, or another one preempts it */
    TRACE_READY = 3,        /* the task may run; argument: its priority */
    TRACE_WAITS = 4,        /* the task waits for an object; argument: the object's number */
    TRACE_TAKEN = 5,        /* the task took from an object (semaphore, mutex, queue) */
    TRACE_GIVEN = 6,        /* the task gave to an object */
    TRACE_INHERITS = 7,     /* the task's priority was raised by a mutex; argument: to which */
    TRACE_DISINHERITS = 8,  /* and set back; argument: to which */
    TRACE_ISR_ENTER = 9,    /* where the target tells */
    TRACE_ISR_EXIT = 10,
    TRACE_DELAYS = 11, /* the task sleeps for a time */
    TRACE_SUSPENDED = 12,
    TRACE_MARK = 32, /* + trace_mark_t; argument: the mark's value */
} trace_event_t;

typedef enum {
    TRACE_MARK_PLANNED,  /* the task should have woken; value: lateness so far, us */
    TRACE_MARK_WOKE,     /* it woke; value: lateness, us */
    TRACE_MARK_OUTLIER,  /* it was later than the bench allows; value: lateness, us */
    TRACE_MARK_MISSED,   /* a deadline was missed; value: by how much, us */
    TRACE_MARK_ACQUIRED, /* the task has what it waited for; value: how long it waited, us */
} trace_mark_t;

/* Empty the ring and record from here on. Objects and tasks are numbered as they are first seen. Not while
 * the clock runs: the first call allocates; without memory nothing is recorded. */
void trace_start(void);

/* Record `more` more events, then keep what is there. A second call does nothing, and neither does one while
 * nothing is recorded. Any task may call it, and an interrupt. */
void trace_freeze(uint32_t more);

/* Stop recording for good, frozen or not; what is there stays for `run trace`. */
void trace_stop(void);

/* Set a mark for the calling task. */
void trace_mark(trace_mark_t mark, uint32_t value);

/* An interrupt handler of a bench began, or ends; the kernel itself tells of none. The task of the event is
 * the one that was interrupted. */
void trace_isr_enter(void);
void trace_isr_exit(void);

struct bench_samples; /* agent/samples.h; the kernel's sources see this header without the agent's */

/* Whether there is something to send: the environment of the burst being filled tells trace_events_count,
 * trace_frozen (0 or 1), and trace_lost_count where events were lost. Call it from run()'s own task after
 * trace_stop(). */
void trace_environment(struct bench_samples *samples);

#ifdef __cplusplus
}
#endif
