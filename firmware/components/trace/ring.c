/* SPDX-License-Identifier: Apache-2.0 */
/* Events of 12 bytes, written without a lock.
 *
 * A writer takes the next number, which is a slot and a lap, and claims the slot by compare-and-exchange: so
 * a slot has one writer at a time, and never one of an older lap over one of a newer. The slot's last word
 * says which lap its event is of, and is written last. A reader takes only what is of the lap it expects, and
 * looks at that word once more after the rest: an event that is half written shows as one that is missing,
 * never as a wrong one.
 */
#include "ring.h"

/* Before FreeRTOS's own headers, which define empty macros where there are none yet. */
#include "names.h"

#include "esp_attr.h"
#include "esp_heap_caps.h"
#include "esp_timer.h"
#include "freertos/FreeRTOS.h"
#include "freertos/task.h"
#include "trace/trace.h"

#if CONFIG_FREERTOS_PLACE_FUNCTIONS_INTO_FLASH || (defined(__riscv) && !CONFIG_LIBC_MISC_IN_IRAM)
#error "the scheduler's hooks run while the flash cache may be off: leave FreeRTOS and libc's atomics in IRAM"
#endif

/* event: 6 bits, task: 5, core: 1, lap: 20 */
enum {
    TASK_SHIFT = 6,
    CORE_SHIFT = 11,
    LAP_SHIFT = 12,
    EVENT_MASK = 0x3f,
    TASK_MASK = 0x1f,
    BEING_WRITTEN = 0x3f
};

#define LAST_NUMBER (1U << 30) /* recording ends there, so that no lap comes twice */

_Static_assert((int)NAMES_TASKS <= TASK_MASK, "a task's number does not fit its bits");
_Static_assert((int)TRACE_MARK + TRACE_MARK_ACQUIRED < BEING_WRITTEN,
               "an event's number does not fit its bits");
_Static_assert((LAST_NUMBER - 1) / TRACE_EVENTS >> (32 - LAP_SHIFT) == 0, "a lap does not fit its bits");
_Static_assert((TRACE_EVENTS & (TRACE_EVENTS - 1)) == 0,
               "not a power of two: numbers and slots part at a wrap");

typedef struct {
    uint32_t time_us;
    uint32_t argument;
    uint32_t word;
} slot_t;

/* On the heap from the first trace on, and for good: an interrupt may still be writing when a trace ends.
 * Before, nothing is recorded, and there is nothing to read. */
static slot_t *s_slots;
static uint32_t s_first = TRACE_EVENTS; /* lap 0 is that of slots never written */
static uint32_t s_next = TRACE_EVENTS;
static uint32_t s_end = LAST_NUMBER; /* nothing is recorded from this number on */
static uint32_t s_start_us;

volatile uint32_t trace_is_on; /* the lap that this trace began with, or 0 */

FORCE_INLINE_ATTR uint32_t lap_of(uint32_t number) {
    return number / TRACE_EVENTS;
}

/* Returns false where another writer has the slot, or had it in a later lap. */
FORCE_INLINE_ATTR bool claim(slot_t *slot, uint32_t lap) {
    uint32_t word = __atomic_load_n(&slot->word, __ATOMIC_RELAXED);
    bool is_free = (word & EVENT_MASK) != BEING_WRITTEN && word >> LAP_SHIFT < lap;
    return is_free && __atomic_compare_exchange_n(&slot->word, &word, lap << LAP_SHIFT | BEING_WRITTEN, false,
                                                  __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

void IRAM_ATTR ring_record(uint32_t event, uint32_t task, uint32_t argument) {
    uint32_t trace = trace_is_on;
    uint32_t number = __atomic_fetch_add(&s_next, 1, __ATOMIC_RELAXED);
    if (number >= __atomic_load_n(&s_end, __ATOMIC_RELAXED)) {
        /* Unless another trace was started meanwhile. */
        (void)__atomic_compare_exchange_n(&trace_is_on, &trace, 0, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
        return;
    }
    slot_t *slot = &s_slots[number % TRACE_EVENTS];
    uint32_t lap = lap_of(number);
    if (!claim(slot, lap)) {
        return;
    }
    uint32_t time_us = (uint32_t)esp_timer_get_time() - __atomic_load_n(&s_start_us, __ATOMIC_RELAXED);
    uint32_t core = (uint32_t)xPortGetCoreID() & 1;
    __atomic_store_n(&slot->time_us, time_us, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->argument, argument, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->word, lap << LAP_SHIFT | core << CORE_SHIFT | task << TASK_SHIFT | event,
                     __ATOMIC_RELEASE);
}

bool ring_read(uint32_t number, ring_event_t *event) {
    const slot_t *slot = &s_slots[number % TRACE_EVENTS];
    uint32_t word = __atomic_load_n(&slot->word, __ATOMIC_ACQUIRE);
    event->time_us = __atomic_load_n(&slot->time_us, __ATOMIC_ACQUIRE);
    event->argument = __atomic_load_n(&slot->argument, __ATOMIC_ACQUIRE);
    event->event = word & EVENT_MASK;
    event->task = word >> TASK_SHIFT & TASK_MASK;
    event->core = word >> CORE_SHIFT & 1;
    bool is_whole = event->event != BEING_WRITTEN && word >> LAP_SHIFT == lap_of(number);
    return is_whole && __atomic_load_n(&slot->word, __ATOMIC_RELAXED) == word;
}

uint32_t ring_end(void) {
    uint32_t next = __atomic_load_n(&s_next, __ATOMIC_RELAXED);
    uint32_t end = __atomic_load_n(&s_end, __ATOMIC_RELAXED);
    return next < end ? next : end;
}

uint32_t ring_first(void) {
    uint32_t end = ring_end();
    return end - s_first > TRACE_EVENTS ? end - TRACE_EVENTS : s_first;
}

bool ring_is_frozen(void) {
    return __atomic_load_n(&s_end, __ATOMIC_RELAXED) != LAST_NUMBER;
}

/* The first number of a lap that no slot knows yet. */
static uint32_t new_lap(void) {
    uint32_t lap = lap_of(__atomic_load_n(&s_next, __ATOMIC_RELAXED)) + 1;
    if (lap < lap_of(LAST_NUMBER) / 2) {
        return lap * TRACE_EVENTS;
    }
    for (uint32_t i = 0; i < TRACE_EVENTS; i++) { /* half of all laps are used up: begin anew */
        __atomic_store_n(&s_slots[i].word, 0, __ATOMIC_RELAXED);
    }
    return TRACE_EVENTS;
}

/* Internal RAM, as the flash cache may be off where it is written. */
static bool take_memory(void) {
    if (s_slots == NULL && names_take_memory()) {
        s_slots = heap_caps_calloc(TRACE_EVENTS, sizeof(*s_slots), MALLOC_CAP_INTERNAL | MALLOC_CAP_8BIT);
    }
    return s_slots != NULL;
}

void trace_start(void) {
    trace_stop();
    if (!take_memory()) {
        return; /* the bench's environment tells of no events, and `run trace` that nothing was traced */
    }
    s_first = new_lap();
    names_clear();
    __atomic_store_n(&s_next, s_first, __ATOMIC_RELAXED);
    __atomic_store_n(&s_end, LAST_NUMBER, __ATOMIC_RELAXED);
    __atomic_store_n(&s_start_us, (uint32_t)esp_timer_get_time(), __ATOMIC_RELAXED);
    __atomic_store_n(&trace_is_on, lap_of(s_first), __ATOMIC_RELEASE);
}

void IRAM_ATTR trace_freeze(uint32_t more) {
    uint32_t next = __atomic_load_n(&s_next, __ATOMIC_RELAXED);
    uint32_t none = LAST_NUMBER;
    if (trace_is_on != 0 && more < LAST_NUMBER - next) {
        (void)__atomic_compare_exchange_n(&s_end, &none, next + more, false, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED);
    }
}

void trace_stop(void) {
    __atomic_store_n(&trace_is_on, 0, __ATOMIC_RELEASE);
}
