/* SPDX-License-Identifier: Apache-2.0 */
/* components/rtos: rounds of a giver and a taker. A round counts only if the taker was waiting when it was
 * given to, and an inversion only if inheritance ended it; whatever happens, tasks and memory are all given
 * back.
 */
#include "idf_check.h"

#include "esp_heap_caps.h"
#include "rtos/pair.h"
#include "samples_private.h"

enum { ROUNDS = 20, TIMEOUT_MS = 1000 };

static bench_samples_t s_samples;
static rtos_round_t s_rounds[ROUNDS];
static size_t s_told;

static void keep(void *context, size_t row, const rtos_round_t *round) {
    (void)context;
    s_rounds[row] = *round;
    s_told++;
}

static size_t play(rtos_exchange_t *exchange, rtos_pair_t pair) {
    pair.samples = &s_samples;
    pair.exchange = exchange;
    pair.timeout_ms = pair.timeout_ms != 0 ? pair.timeout_ms : TIMEOUT_MS;
    pair.measured = keep;
    s_told = 0;
    CHECK_EQUAL(rtos_pair_run(&pair, ROUNDS), ESP_OK);
    CHECK_EQUAL(s_told, ROUNDS);
    size_t done = 0;
    for (size_t i = 0; i < ROUNDS; i++) {
        done += s_rounds[i].done;
    }
    return done;
}

static size_t play_type(rtos_exchange_type_t type, rtos_pair_t pair) {
    rtos_exchange_t exchange = {.type = type};
    CHECK_EQUAL(rtos_exchange_create(&exchange), ESP_OK);
    size_t done = play(&exchange, pair);
    rtos_exchange_delete(&exchange);
    return done;
}

static const rtos_pair_t ONE_CORE = {.giver_priority = 8, .taker_priority = 10};
static const rtos_pair_t INVERTED = {
    .giver_priority = 6, .middle_priority = 8, .taker_priority = 10, .taker_begins = true};

static void check_order(void) {
    for (size_t i = 0; i < ROUNDS; i++) {
        CHECK_EQUAL(s_rounds[i].begin.core, 0);
        CHECK_EQUAL(s_rounds[i].end.core, 0);
        CHECK((int32_t)(s_rounds[i].end.cycles - s_rounds[i].begin.cycles) > 0);
    }
}

static void check_that_all_are_played(void) {
    for (int type = RTOS_EXCHANGE_SEMAPHORE; type <= RTOS_EXCHANGE_RESUME; type++) {
        if (type == RTOS_EXCHANGE_SPINLOCK) {
            continue; /* of two cores */
        }
        rtos_pair_t pair = ONE_CORE;
        pair.taker_priority = type == RTOS_EXCHANGE_YIELD ? pair.giver_priority : pair.taker_priority;
        CHECK_EQUAL(play_type((rtos_exchange_type_t)type, pair), ROUNDS);
        check_order();
    }
}

/* Without inheritance the task between the two has the core until it ends the inversion itself. */
static void check_that_only_inheritance_breaks_the_deadlock(void) {
    if (!realtime()) {
        return; /* priorities are no priorities then */
    }
    CHECK_EQUAL(play_type(RTOS_EXCHANGE_MUTEX, INVERTED), ROUNDS);
    check_order();
    CHECK_EQUAL(play_type(RTOS_EXCHANGE_SEMAPHORE, INVERTED), 0);
}

static bool not_waiting(const rtos_exchange_t *exchange) {
    (void)exchange;
    return false;
}

/* A semaphore whose taker is, as far as the giver can see, never there in time. */
static size_t play_late_taker(TickType_t interval, uint32_t timeout_ms) {
    rtos_exchange_t exchange = {.type = RTOS_EXCHANGE_SEMAPHORE};
    CHECK_EQUAL(rtos_exchange_create(&exchange), ESP_OK);
    rtos_exchange_kind_t late = *exchange.kind;
    late.waiting = not_waiting;
    exchange.kind = &late;
    rtos_pair_t pair = ONE_CORE;
    pair.interval = interval;
    pair.timeout_ms = timeout_ms;
    size_t done = play(&exchange, pair);
    rtos_exchange_delete(&exchange);
    return done;
}

static void check_that_a_late_taker_does_not_count(void) {
    CHECK_EQUAL(play_late_taker(1, TIMEOUT_MS), 0); /* looked at once */
    CHECK_EQUAL(play_late_taker(0, 5), 0);          /* waited for, in vain */
}

static size_t free_after_a_run(UBaseType_t tasks) {
    play_type(RTOS_EXCHANGE_EVENT_GROUP, ONE_CORE);
    play_type(RTOS_EXCHANGE_MUTEX, INVERTED);
    CHECK_SOON(uxTaskGetNumberOfTasks() == tasks);
    return heap_caps_get_free_size(MALLOC_CAP_DEFAULT);
}

/* Against the first run, as what has ended is freed with the next task. */
static void check_that_nothing_is_lost(UBaseType_t tasks) {
    size_t first = free_after_a_run(tasks);
    for (int i = 0; i < 10; i++) {
        CHECK_EQUAL(free_after_a_run(tasks), first);
    }
}

void app_main(void) {
    UBaseType_t tasks = uxTaskGetNumberOfTasks();
    samples_reset(&s_samples, 1, NULL);
    check_that_all_are_played();
    check_that_only_inheritance_breaks_the_deadlock();
    check_that_a_late_taker_does_not_count();
    check_that_nothing_is_lost(tasks);
    exit(EXIT_SUCCESS);
}
