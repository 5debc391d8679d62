/* SPDX-License-Identifier: Apache-2.0 */
/* The ring of scheduler events: order, overflow, freezing, and writers that meet on its slots. */
#include "idf_check.h"
#include "ring.h"
#include "trace/hooks.h"

#define WRITERS 4
#define EVENTS_EACH 60000

static volatile bool s_writing;
static SemaphoreHandle_t s_done;

static uint32_t count_events(void) {
    uint32_t count = 0;
    for (uint32_t number = ring_first(); number != ring_end(); number++) {
        ring_event_t event;
        count += ring_read(number, &event) ? 1 : 0;
    }
    return count;
}

/* What the tests record themselves; the kernel's own events stay out, as nothing else runs meanwhile. */
static void record(uint32_t from, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        ring_record(TRACE_MARK, 1, from + i);
    }
}

static uint32_t argument_at(uint32_t place) {
    ring_event_t event;
    CHECK(ring_read(ring_first() + place, &event));
    return event.argument;
}

static void check_empty_before_start(void) {
    trace_mark(TRACE_MARK_WOKE, 1);
    trace_freeze(10);
    vTaskDelay(1);
    CHECK_EQUAL(ring_end() - ring_first(), 0);
}

static void check_order(void) {
    trace_start();
    int64_t began_us = esp_timer_get_time();
    record(100, 5);
    ring_record(TRACE_READY, 24, UINT32_MAX);
    int64_t took_us = esp_timer_get_time() - began_us;
    trace_stop();
    CHECK_EQUAL(count_events(), 6);
    uint32_t before_us = 0;
    for (uint32_t place = 0; place < 6; place++) {
        ring_event_t event;
        CHECK(ring_read(ring_first() + place, &event));
        CHECK_EQUAL(event.argument, place < 5 ? 100 + place : UINT32_MAX);
        CHECK_EQUAL(event.task, place < 5 ? 1 : 24);
        CHECK_EQUAL(event.event, place < 5 ? TRACE_MARK : TRACE_READY);
        CHECK(event.core < portNUM_PROCESSORS);
        CHECK(event.time_us >= before_us && event.time_us <= took_us + 1000);
        before_us = event.time_us;
    }
    CHECK(!ring_is_frozen());
}

static void check_the_oldest_go(void) {
    trace_start();
    record(0, 3 * TRACE_EVENTS + 7);
    trace_stop();
    CHECK_EQUAL(count_events(), TRACE_EVENTS);
    for (uint32_t place = 0; place < TRACE_EVENTS; place++) {
        CHECK_EQUAL(argument_at(place), 2 * TRACE_EVENTS + 7 + place);
    }
}

/* Ten more, whatever is asked a second time; then nothing, not even by who keeps recording. */
static void check_freezing(void) {
    trace_start();
    record(0, 20);
    trace_freeze(10);
    record(20, 4);
    trace_freeze(100);
    record(24, 500);
    CHECK(ring_is_frozen());
    CHECK_EQUAL(trace_is_on, 0);
    trace_mark(TRACE_MARK_WOKE, 1);
    trace_stop();
    CHECK_EQUAL(count_events(), 30);
    CHECK_EQUAL(argument_at(29), 29);
    trace_freeze(5);
    CHECK_EQUAL(count_events(), 30);
}

static void check_freezing_at_once(void) {
    trace_start();
    record(0, 3);
    trace_freeze(0);
    record(3, 3);
    trace_stop();
    CHECK_EQUAL(count_events(), 3);
}

static void check_a_new_start_empties(void) {
    trace_start();
    CHECK_EQUAL(count_events(), 0);
    CHECK(!ring_is_frozen());
    record(7, 1);
    trace_stop();
    CHECK_EQUAL(count_events(), 1);
    CHECK_EQUAL(argument_at(0), 7);
}

/* What a slot does not hold is not read from it: neither what comes a lap later nor what is not there yet. */
static void check_only_what_is_there(void) {
    trace_start();
    record(0, 10);
    trace_stop();
    ring_event_t event;
    CHECK(ring_read(ring_first(), &event));
    CHECK(!ring_read(ring_first() + TRACE_EVENTS, &event));
    CHECK(!ring_read(ring_first() + 10, &event));
}

static uint32_t s_interrupting; /* how many events come in the middle of the next one */

int64_t __real_esp_timer_get_time(void);
int64_t __wrap_esp_timer_get_time(void);

/* ring_record() asks for the time when its slot is claimed and not yet written. */
int64_t __wrap_esp_timer_get_time(void) {
    uint32_t count = s_interrupting;
    s_interrupting = 0;
    if (count > 0) {
        uint32_t own = ring_end() - 1;
        record(1000, count);
        ring_event_t event;
        CHECK(!ring_read(own, &event));
        CHECK(!ring_read(own + TRACE_EVENTS, &event)); /* lost, not written over it */
        CHECK(ring_read(own + TRACE_EVENTS - 1, &event));
    }
    return __real_esp_timer_get_time();
}

/* A slot that is being written is its writer's, though a whole lap comes meanwhile. */
static void check_an_interrupted_writer(void) {
    trace_start();
    record(0, 3);
    s_interrupting = TRACE_EVENTS;
    record(3, 1);
    trace_stop();
    CHECK_EQUAL(count_events(),
                TRACE_EVENTS - 1); /* the one whose slot was taken is missing, and none is wrong */
    CHECK_EQUAL(argument_at(0), 1000);
}

/* Each writer has its own task number, and its events say so twice. */
static bool is_whole(const ring_event_t *event) {
    return event->event == TRACE_MARK + event->task && event->argument >> 24 == event->task;
}

static void write_many(void *argument) {
    uint32_t writer = (uint32_t)(uintptr_t)argument;
    for (uint32_t i = 0; i < EVENTS_EACH; i++) {
        ring_record(TRACE_MARK + writer, writer, writer << 24 | i);
        if (i % 512 == writer) {
            vTaskDelay(1); /* lets those of lower priority in, who are then interrupted in the middle */
        }
    }
    xSemaphoreGive(s_done);
    vTaskDelete(NULL);
}

/* While all write: what can be read is whole. */
static void read_meanwhile(void *argument) {
    (void)argument;
    while (s_writing) {
        uint32_t first = ring_first();
        for (uint32_t i = 0; i < TRACE_EVENTS; i++) {
            ring_event_t event;
            CHECK(!ring_read(first + i, &event) || is_whole(&event));
        }
        vTaskDelay(1);
    }
    xSemaphoreGive(s_done);
    vTaskDelete(NULL);
}

static void start_writers(void) {
    s_writing = true;
    for (uint32_t writer = 1; writer <= WRITERS; writer++) {
        spawn(write_many, (void *)(uintptr_t)writer, 2 + writer / 2,
              (BaseType_t)(writer % portNUM_PROCESSORS));
    }
    spawn(read_meanwhile, NULL, 8, 0);
}

static void await_writers(void) {
    for (int i = 0; i < WRITERS; i++) {
        CHECK(xSemaphoreTake(s_done, portMAX_DELAY));
    }
    s_writing = false;
    CHECK(xSemaphoreTake(s_done, portMAX_DELAY));
}

static void check_writers_on_both_cores(void) {
    trace_start();
    trace_is_on = 0; /* these writers only, none of the kernel's events */
    start_writers();
    await_writers();
    CHECK_EQUAL(ring_end() - ring_first(), TRACE_EVENTS);
    uint32_t last[WRITERS + 1] = {0};
    uint32_t whole = 0;
    for (uint32_t number = ring_first(); number != ring_end(); number++) {
        ring_event_t event;
        if (ring_read(number, &event)) {
            CHECK(is_whole(&event));
            CHECK(event.argument > last[event.task]); /* one writer's events stay in their order */
            last[event.task] = event.argument;
            whole++;
        }
    }
    fprintf(stderr, "of the last %d events of %d writers %u are there\n", TRACE_EVENTS, WRITERS,
            (unsigned)whole);
    CHECK(whole >= TRACE_EVENTS - WRITERS); /* a writer loses one at most: where another is a lap behind */
}

void app_main(void) {
    s_done = xSemaphoreCreateCounting(WRITERS + 1, 0);
    check_empty_before_start();
    check_order();
    check_the_oldest_go();
    check_freezing();
    check_freezing_at_once();
    check_a_new_start_empties();
    check_only_what_is_there();
    check_an_interrupted_writer();
    check_writers_on_both_cores();
    _exit(0);
}
