/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "freertos/FreeRTOS.h"
#include "freertos/task.h"
#include "private.h"

enum { PRIORITY = tskIDLE_PRIORITY + 1, STACK_BYTES = 2048, READS = 16 };

struct cost_background {
    SemaphoreHandle_t ended;
    TaskHandle_t task;
};

static rtos_spin_t s_spin; /* of the one background that there is, for cost_mark() */

void __attribute__((noinline)) cost_mark(cost_moment_t *moment) {
    moment->rounds = s_spin.rounds;
    moment->steps = rtos_instructions_read();
}

static uint64_t instructions_between(const cost_t *cost, const cost_moment_t *begin,
                                     const cost_moment_t *end) {
    uint64_t rounds = end->rounds - begin->rounds;
    return (end->steps - begin->steps) / cost->ticks - rounds * RTOS_SPIN_INSTRUCTIONS;
}

uint32_t cost_instructions(const cost_t *cost) {
    uint64_t instructions = instructions_between(cost, &cost->begin, &cost->end);
    instructions = instructions > cost->mark ? instructions - cost->mark : 0;
    return instructions < UINT32_MAX ? (uint32_t)instructions : UINT32_MAX;
}

static uint32_t least_between_marks(const cost_t *cost) {
    uint64_t least = UINT32_MAX;
    for (int i = 0; i < READS; i++) {
        cost_moment_t begin, end;
        cost_mark(&begin);
        cost_mark(&end);
        uint64_t between = instructions_between(cost, &begin, &end);
        least = between < least ? between : least;
    }
    return (uint32_t)least;
}

static void spin(void *argument) {
    cost_background_t *background = argument;
    rtos_instructions_spin(&s_spin);
    xSemaphoreGive(background->ended);
    vTaskDelete(NULL);
}

static bool start(cost_background_t *background) {
    background->ended = xSemaphoreCreateBinary();
    return background->ended != NULL && xTaskCreatePinnedToCore(spin, "cost_idle", STACK_BYTES, background,
                                                                PRIORITY, &background->task, 0) == pdPASS;
}

esp_err_t cost_background_start(cost_t *cost) {
    esp_err_t err = rtos_instructions_calibrate(&cost->ticks, cost->samples);
    if (err != ESP_OK) {
        return err;
    }
    cost->mark = least_between_marks(cost);
    bench_environment_int(cost->samples, "mark_instructions", cost->mark);
    s_spin = (rtos_spin_t){0};
    cost->background = calloc(1, sizeof(*cost->background));
    if (cost->background == NULL || !start(cost->background)) {
        return bench_fail(cost->samples, BENCH_OWNER_FIRMWARE, ESP_ERR_NO_MEM, "no memory for a task");
    }
    cost_background_suspend(cost);
    return ESP_OK;
}

void cost_background_resume(const cost_t *cost) {
    vTaskResume(cost->background->task);
}

void cost_background_suspend(const cost_t *cost) {
    vTaskSuspend(cost->background->task);
}

void cost_background_stop(cost_t *cost) {
    cost_background_t *background = cost->background;
    if (background == NULL) {
        return;
    }
    if (background->task != NULL) {
        s_spin.stop = 1;
        vTaskResume(background->task);
        xSemaphoreTake(background->ended, portMAX_DELAY);
    }
    if (background->ended != NULL) {
        vSemaphoreDelete(background->ended);
    }
    free(background);
    cost->background = NULL;
}
