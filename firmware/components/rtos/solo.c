/* SPDX-License-Identifier: Apache-2.0 */
#include "rtos/solo.h"

#include <stdlib.h>

#include "freertos/task.h"
#include "rtos/interrupt.h"

enum {
    STACK_BYTES = 4096,
    HANDLE_US = 10000, /* an interrupt that has not come by then does not come */
};

static void run_rounds(void *context) {
    rtos_solo_t *solo = context;
    const rtos_solo_kind_t *kind = solo->kind;
    solo->err = kind->prepare != NULL ? kind->prepare(solo->kind_context) : ESP_OK;
    if (solo->err != ESP_OK) {
        return;
    }
    for (size_t row = 0; row < solo->rows && !solo->workers.stop; row++) {
        rtos_round_t round = {.done = false};
        kind->play(solo->kind_context, &round);
        solo->measured(solo->context, row, &round);
    }
    if (kind->clean_up != NULL) {
        kind->clean_up(solo->kind_context);
    }
}

esp_err_t rtos_solo_run(rtos_solo_t *solo, size_t rows) {
    load_worker_t worker = {.name = "solo",
                            .work = run_rounds,
                            .context = solo,
                            .core = solo->core,
                            .priority = solo->priority,
                            .stack_bytes = STACK_BYTES};
    solo->rows = rows;
    esp_err_t err = load_workers_create(&solo->workers, solo->run);
    err = err != ESP_OK ? err : load_workers_run(&solo->workers, &worker, 1);
    load_workers_delete(&solo->workers);
    solo->stack_free_min_bytes = worker.stack_free_min_bytes;
    return err != ESP_OK ? err : solo->err;
}

/* ---- an interrupt ---- */

static bool IRAM_ATTR on_interrupt(void *context) {
    rtos_raise_t *raise = context;
    raise->handled_at = rtos_stamp_end();
    raise->handled = true;
    return false;
}

static esp_err_t install(void *context) {
    return rtos_interrupt_install(on_interrupt, context);
}

static void raise_once(void *context, rtos_round_t *round) {
    rtos_raise_t *raise = context;
    raise->handled = false;
    round->begin = rtos_stamp_begin();
    rtos_interrupt_raise();
    while (!raise->handled && esp_timer_get_time() - round->begin.us < HANDLE_US) {
    }
    round->done = raise->handled;
    round->end = round->done ? raise->handled_at : rtos_stamp_end();
}

static void remove_handler(void *context) {
    (void)context;
    rtos_interrupt_remove();
}

const rtos_solo_kind_t rtos_raise = {.prepare = install, .play = raise_once, .clean_up = remove_handler};

/* ---- a critical section ---- */

static void enter_and_exit(void *context, rtos_round_t *round) {
    portMUX_TYPE *lock = context;
    round->begin = rtos_stamp_begin();
    taskENTER_CRITICAL(lock);
    taskEXIT_CRITICAL(lock);
    round->end = rtos_stamp_end();
    taskENTER_CRITICAL(lock);
    round->give = rtos_stamp_begin();
    taskEXIT_CRITICAL(lock);
    round->given = rtos_stamp_end();
    round->done = true;
}

const rtos_solo_kind_t rtos_critical = {.play = enter_and_exit};

/* ---- memory ---- */

static void allocate_and_free(void *context, rtos_round_t *round) {
    size_t bytes = *(const size_t *)context;
    round->begin = rtos_stamp_begin();
    void *volatile block = malloc(bytes); /* volatile: a pair that nobody looks at would be left out */
    free(block);
    round->end = rtos_stamp_end();
    round->done = block != NULL;
}

const rtos_solo_kind_t rtos_allocate = {.play = allocate_and_free};
