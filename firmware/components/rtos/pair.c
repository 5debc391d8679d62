/* SPDX-License-Identifier: Apache-2.0 */
#include "rtos/pair.h"

#include "freertos/task.h"

enum {
    STACK_BYTES = 4096,
    SPIN_US = 1000,    /* of looking for the taker before giving way to everything else */
    SETTLE_US = 20,    /* from its waiting, as another core sees it, until its own core has come to rest */
    MIDDLE_US = 20000, /* an inversion that no inheritance ends is ended here */
};

static void spin_us(int64_t us) {
    for (int64_t until_us = esp_timer_get_time() + us; esp_timer_get_time() < until_us;) {
    }
}

/* ---- the taker ---- */

static void take_once(rtos_pair_t *pair) {
    const rtos_exchange_kind_t *kind = pair->exchange->kind;
    rtos_round_t *round = &pair->round;
    atomic_store(&pair->arrived, true);
    if (pair->taker_begins) {
        round->begin = rtos_stamp_begin();
    }
    bool taken = kind->take(pair->exchange, pdMS_TO_TICKS(pair->timeout_ms));
    round->end = rtos_stamp_end();
    atomic_store(&pair->over, true);
    if (taken && kind->put_back != NULL) {
        kind->put_back(pair->exchange);
    }
    atomic_store(&pair->taken, taken);
}

static void run_taker(void *context) {
    rtos_pair_t *pair = context;
    pair->exchange->taker = xTaskGetCurrentTaskHandle();
    xSemaphoreGive(pair->done); /* the giver may begin */
    while (load_workers_take(&pair->workers, pair->go) && !atomic_load(&pair->ended)) {
        take_once(pair);
        xSemaphoreGive(pair->done);
    }
}

/* ---- the task between them ---- */

static void run_middle(void *context) {
    rtos_pair_t *pair = context;
    while (load_workers_take(&pair->workers, pair->middle_go) && !atomic_load(&pair->ended)) {
        xSemaphoreGive(pair->go); /* the taker runs, and comes to wait for the giver, who cannot run */
        int64_t until_us = esp_timer_get_time() + MIDDLE_US;
        while (!atomic_load(&pair->over) && esp_timer_get_time() < until_us) {
        }
        atomic_store(&pair->over, true);
    }
}

/* ---- the giver ---- */

/* In slices, so that the task is never lost to an abort. */
static bool await_done(const rtos_pair_t *pair) {
    for (uint32_t waited_ms = 0; waited_ms <= 2 * pair->timeout_ms; waited_ms += LOAD_CHECK_MS) {
        if (xSemaphoreTake(pair->done, pdMS_TO_TICKS(LOAD_CHECK_MS)) == pdTRUE) {
            return true;
        }
        if (pair->exchange->kind->give_again && pair->exchange->taker != NULL) {
            pair->exchange->kind->give(pair->exchange);
        }
    }
    return false;
}

static bool has_arrived(const rtos_pair_t *pair) {
    const rtos_exchange_kind_t *kind = pair->exchange->kind;
    return atomic_load(&pair->arrived) && (kind->meet != NULL || kind->waiting(pair->exchange));
}

/* Without an interval the giver waits for the taker. With one it has given it that long to come. */
static bool await_arrival(const rtos_pair_t *pair) {
    int64_t began_us = esp_timer_get_time();
    bool once = pair->interval != 0;
    while (!has_arrived(pair)) {
        int64_t waited_us = esp_timer_get_time() - began_us;
        if (once || pair->workers.stop || waited_us > (int64_t)pair->timeout_ms * 1000) {
            return false;
        }
        if (waited_us > SPIN_US) {
            vTaskDelay(1);
        } else {
            taskYIELD(); /* to a taker of the same priority */
        }
    }
    return true;
}

static bool await_taker(const rtos_pair_t *pair) {
    const rtos_exchange_kind_t *kind = pair->exchange->kind;
    if (!await_arrival(pair)) {
        return false;
    }
    if (kind->meet != NULL) {
        return kind->meet(pair->exchange);
    }
    bool one_core = pair->giver_core == pair->taker_core && pair->giver_core != tskNO_AFFINITY;
    if (pair->interval == 0 && !one_core) {
        spin_us(SETTLE_US);
    }
    return true;
}

static void give_alone(rtos_pair_t *pair) {
    const rtos_exchange_kind_t *kind = pair->exchange->kind;
    if (!pair->measure_give || !kind->hold(pair->exchange)) {
        return;
    }
    pair->round.give = rtos_stamp_begin();
    kind->give(pair->exchange);
    pair->round.given = rtos_stamp_end();
}

static void let_taker_go(rtos_pair_t *pair) {
    atomic_store(&pair->arrived, false);
    atomic_store(&pair->over, false);
    xSemaphoreGive(pair->middle_go != NULL ? pair->middle_go : pair->go);
    if (pair->taker_begins) {
        pair->round.paused = rtos_stamp_end(); /* the taker has come to wait, or this would not run */
    }
}

/* Returns whether the taker was waiting. */
static bool give(rtos_pair_t *pair) {
    rtos_round_t *round = &pair->round;
    if (pair->interval != 0) {
        vTaskDelay(pair->interval);
    }
    bool waiting = await_taker(pair) && !atomic_load(&pair->over);
    if (pair->taker_begins) {
        round->resumed = rtos_stamp_begin();
    } else {
        round->begin = rtos_stamp_begin();
    }
    pair->exchange->kind->give(pair->exchange);
    return waiting;
}

/* False where the taker did not come back, after which nothing can be played any more. */
static bool play(rtos_pair_t *pair) {
    const rtos_exchange_kind_t *kind = pair->exchange->kind;
    pair->round = (rtos_round_t){.split = pair->taker_begins};
    give_alone(pair);
    rtos_stamp_t attempt = rtos_stamp_begin();
    bool held = kind->meet != NULL || kind->hold(pair->exchange);
    let_taker_go(pair);
    bool waiting = give(pair);
    if (!await_done(pair)) {
        return false;
    }
    pair->round.done = held && waiting && atomic_load(&pair->taken);
    if (!pair->round.done) {
        pair->round.begin = attempt;
        pair->round.end = rtos_stamp_end();
    }
    return true;
}

static void run_giver(void *context) {
    rtos_pair_t *pair = context;
    bool here = await_done(pair);
    for (size_t row = 0; row < pair->rows && here && !pair->workers.stop; row++) {
        here = play(pair);
        if (here) {
            pair->measured(pair->context, row, &pair->round);
        }
    }
    pair->stuck = !here;
    atomic_store(&pair->ended, true);
    xSemaphoreGive(pair->go);
    if (pair->middle_go != NULL) {
        xSemaphoreGive(pair->middle_go);
    }
}

/* ---- the run ---- */

static esp_err_t create(rtos_pair_t *pair) {
    pair->go = xSemaphoreCreateBinary();
    pair->done = xSemaphoreCreateBinary();
    pair->middle_go = pair->middle_priority != 0 ? xSemaphoreCreateBinary() : NULL;
    bool complete =
        pair->go != NULL && pair->done != NULL && (pair->middle_go != NULL || pair->middle_priority == 0);
    return complete ? load_workers_create(&pair->workers, pair->run) : ESP_ERR_NO_MEM;
}

static void clean_up(rtos_pair_t *pair) {
    SemaphoreHandle_t *const semaphores[] = {&pair->go, &pair->middle_go, &pair->done};
    for (size_t i = 0; i < sizeof(semaphores) / sizeof(semaphores[0]); i++) {
        if (*semaphores[i] != NULL) {
            vSemaphoreDelete(*semaphores[i]);
            *semaphores[i] = NULL;
        }
    }
    load_workers_delete(&pair->workers);
}

static esp_err_t run(rtos_pair_t *pair) {
    load_worker_t workers[] = {
        {.name = "taker", .work = run_taker, .core = pair->taker_core, .priority = pair->taker_priority},
        {.name = "giver", .work = run_giver, .core = pair->giver_core, .priority = pair->giver_priority},
        {.name = "middle", .work = run_middle, .core = pair->giver_core, .priority = pair->middle_priority},
    };
    size_t count = pair->middle_priority != 0 ? 3 : 2;
    for (size_t i = 0; i < count; i++) {
        workers[i].context = pair;
        workers[i].stack_bytes = STACK_BYTES;
    }
    esp_err_t err = load_workers_run(&pair->workers, workers, count);
    pair->stack_free_min_bytes = UINT32_MAX;
    for (size_t i = 0; i < count; i++) {
        uint32_t bytes = workers[i].stack_free_min_bytes;
        pair->stack_free_min_bytes = bytes < pair->stack_free_min_bytes ? bytes : pair->stack_free_min_bytes;
    }
    return err;
}

esp_err_t rtos_pair_run(rtos_pair_t *pair, size_t rows) {
    pair->rows = rows;
    pair->stuck = false;
    pair->exchange->taker = NULL;
    atomic_store(&pair->ended, false);
    esp_err_t err = create(pair);
    err = err != ESP_OK ? err : run(pair);
    clean_up(pair);
    if (err == ESP_OK && pair->stuck) {
        return bench_fail(pair->samples, BENCH_OWNER_FIRMWARE, ESP_ERR_TIMEOUT,
                          "the taker did not come back from what it was given");
    }
    return err;
}
