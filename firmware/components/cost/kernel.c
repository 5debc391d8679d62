/* SPDX-License-Identifier: Apache-2.0 */
/* What FreeRTOS is asked for on the way of a message: a switch to another task, a queue, a mutex. */
#include <stdlib.h>

#include "freertos/FreeRTOS.h"
#include "freertos/queue.h"
#include "freertos/task.h"
#include "private.h"

enum { PARTNER_STACK_BYTES = 2048 };

typedef struct {
    QueueHandle_t queue;
    SemaphoreHandle_t mutex;
    SemaphoreHandle_t partner_ended;
    cost_moment_t switched;
    volatile uint32_t turns; /* of the partner */
    volatile bool stop;
} kernel_t;

static esp_err_t no_memory(cost_t *cost) {
    return bench_fail(cost->samples, BENCH_OWNER_FIRMWARE, ESP_ERR_NO_MEM, "no memory for a part's objects");
}

static esp_err_t open_kernel(cost_t *cost) {
    kernel_t *kernel = calloc(1, sizeof(*kernel));
    cost->own = kernel;
    if (kernel == NULL) {
        return no_memory(cost);
    }
    kernel->queue = xQueueCreate(1, sizeof(uint32_t));
    kernel->mutex = xSemaphoreCreateMutex();
    bool complete = kernel->queue != NULL && kernel->mutex != NULL;
    return complete ? ESP_OK : no_memory(cost);
}

static void close_kernel(cost_t *cost) {
    kernel_t *kernel = cost->own;
    if (kernel == NULL) {
        return;
    }
    if (kernel->queue != NULL) {
        vQueueDelete(kernel->queue);
    }
    if (kernel->mutex != NULL) {
        vSemaphoreDelete(kernel->mutex);
    }
    free(kernel);
}

/* ---- a queue: one value in and out again, nobody waits ---- */

static bool repeat_queue(cost_t *cost) {
    kernel_t *kernel = cost->own;
    uint32_t value = cost->number, got = 0;
    cost_mark(&cost->begin);
    xQueueSend(kernel->queue, &value, 0);
    xQueueReceive(kernel->queue, &got, 0);
    cost_mark(&cost->end);
    return got == value;
}

const cost_part_t cost_queue = {.open = open_kernel, .repeat = repeat_queue, .close = close_kernel};

/* ---- a mutex: taken and given, nobody waits ---- */

static bool repeat_mutex(cost_t *cost) {
    kernel_t *kernel = cost->own;
    cost_mark(&cost->begin);
    bool taken = xSemaphoreTake(kernel->mutex, 0) == pdTRUE;
    xSemaphoreGive(kernel->mutex);
    cost_mark(&cost->end);
    return taken;
}

const cost_part_t cost_mutex = {.open = open_kernel, .repeat = repeat_mutex, .close = close_kernel};

/* ---- a switch: from one task's yield until another of the same priority runs ---- */

static void partner(void *argument) {
    kernel_t *kernel = argument;
    while (!kernel->stop) {
        taskYIELD();
        cost_mark(&kernel->switched);
        kernel->turns++;
    }
    xSemaphoreGive(kernel->partner_ended);
    vTaskDelete(NULL);
}

static esp_err_t open_switch(cost_t *cost) {
    esp_err_t err = open_kernel(cost);
    if (err != ESP_OK) {
        return err;
    }
    kernel_t *kernel = cost->own;
    kernel->partner_ended = xSemaphoreCreateBinary();
    bool created = kernel->partner_ended != NULL &&
                   xTaskCreatePinnedToCore(partner, "cost_partner", PARTNER_STACK_BYTES, kernel,
                                           AGENT_RUN_PRIORITY, NULL, 0) == pdPASS;
    if (!created && kernel->partner_ended != NULL) {
        vSemaphoreDelete(kernel->partner_ended);
        kernel->partner_ended = NULL;
    }
    return created ? ESP_OK : no_memory(cost);
}

static bool repeat_switch(cost_t *cost) {
    kernel_t *kernel = cost->own;
    taskYIELD(); /* a tick may have stopped the partner anywhere: now it is in its own yield */
    uint32_t turns = kernel->turns;
    cost_mark(&cost->begin);
    taskYIELD();
    cost->end = kernel->switched;
    return kernel->turns == turns + 1;
}

static void close_switch(cost_t *cost) {
    kernel_t *kernel = cost->own;
    if (kernel != NULL && kernel->partner_ended != NULL) {
        kernel->stop = true;
        xSemaphoreTake(kernel->partner_ended, portMAX_DELAY);
        vSemaphoreDelete(kernel->partner_ended);
    }
    close_kernel(cost);
}

const cost_part_t cost_task_switch = {.open = open_switch, .repeat = repeat_switch, .close = close_switch};
