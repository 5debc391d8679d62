/* SPDX-License-Identifier: Apache-2.0 */
/* The partners of a Thread-Metric window: they agree where the kernel does what it should, and where one
 * cheats, or what it waits for does not come, the window is not consistent. Yielding, resuming and the
 * interrupt are played wrong on demand. */
#include <stdbool.h>

#include "expect.h"
#include "freertos/FreeRTOS.h"
#include "freertos/task.h"
#include "load/workers.h"
#include "rtos/interrupt.h"
#include "rtos/thread_tests.h"

enum { WINDOW_MS = 100, TIMEOUT_MS = 100, EVERY = 3 };

typedef enum { HONEST, DOES_NOT_YIELD, IS_NOT_RESUMED, IS_NOT_INTERRUPTED } plant_t;

static plant_t s_plant;
static unsigned s_calls;
static TaskHandle_t s_cheat; /* the first partner that yields in a window */

void __real_vPortYield(void);
void __real_vTaskResume(TaskHandle_t task);
void __real_rtos_interrupt_raise(void);
void __wrap_vPortYield(void);
void __wrap_vTaskResume(TaskHandle_t task);
void __wrap_rtos_interrupt_raise(void);
bool __wrap_bench_aborted(const bench_run_t *run);

/* Counts several times before it lets the others have their turn. */
void __wrap_vPortYield(void) {
    s_cheat = s_cheat == NULL ? xTaskGetCurrentTaskHandle() : s_cheat;
    if (s_plant != DOES_NOT_YIELD || s_cheat != xTaskGetCurrentTaskHandle() || s_calls++ % EVERY == 0) {
        __real_vPortYield();
    }
}

void __wrap_vTaskResume(TaskHandle_t task) {
    if (s_plant != IS_NOT_RESUMED || s_calls++ % EVERY != 0) {
        __real_vTaskResume(task);
    }
}

void __wrap_rtos_interrupt_raise(void) {
    if (s_plant != IS_NOT_INTERRUPTED) {
        __real_rtos_interrupt_raise();
    }
}

bool __wrap_bench_aborted(const bench_run_t *run) {
    (void)run;
    return false;
}

typedef struct {
    rtos_test_t test;
    rtos_test_window_t window;
    esp_err_t err;
} trial_t;

static void start(void *context) {
    trial_t *trial = context;
    trial->err = rtos_test_run(trial->test, NULL, WINDOW_MS, TIMEOUT_MS, &trial->window);
}

static rtos_test_window_t run(rtos_test_t test, plant_t plant) {
    trial_t trial = {.test = test};
    load_workers_t workers = {0};
    load_worker_t starter = {
        .name = "starter", .work = start, .context = &trial, .priority = RTOS_TEST_STARTER_PRIORITY};
    s_plant = plant;
    s_calls = 0;
    s_cheat = NULL;
    EXPECT(load_workers_create(&workers, NULL) == ESP_OK);
    EXPECT(load_workers_run(&workers, &starter, 1) == ESP_OK);
    load_workers_delete(&workers);
    EXPECT(trial.err == ESP_OK);
    return trial.window;
}

static void expect_caught(rtos_test_t test, plant_t plant) {
    rtos_test_window_t window = run(test, plant);
    EXPECT(!rtos_test_is_consistent(&window));
    window = run(test, HONEST);
    EXPECT(rtos_test_is_consistent(&window));
}

void app_main(void) {
    expect_caught(RTOS_TEST_COOPERATIVE, DOES_NOT_YIELD);
    expect_caught(RTOS_TEST_PREEMPTIVE, IS_NOT_RESUMED);
    expect_caught(RTOS_TEST_INTERRUPT, IS_NOT_INTERRUPTED);
    expect_caught(RTOS_TEST_INTERRUPT_PREEMPTION, IS_NOT_INTERRUPTED);
    exit(EXIT_SUCCESS);
}
