/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks that compute, and the one that the measured task is pushed about by. */
#include "esp_timer.h"
#include "load_private.h"

enum {
    COMPUTE_US = 87000, /* with the pause no whole number of common periods: wakes meet it at every phase */
    PUSHING_US =
        2000000, /* the study's never pause; where both cores are one CPU, nothing else would ever run */
    PAUSE_MS = 10,
    ROUNDS = 100,
};

static volatile uint32_t s_factor = 2, s_product; /* so that each multiplication is one */

static void multiply_ten(void) {
    for (uint32_t i = 0; i < 10; i++) {
        s_product = i * s_factor;
    }
}

void rtos_multiply(void) {
    for (int round = 0; round < ROUNDS; round++) {
        multiply_ten();
    }
}

void rtos_compute_us(uint32_t duration_us) {
    const int64_t end_us = esp_timer_get_time() + duration_us;
    while (esp_timer_get_time() < end_us) {
        multiply_ten();
    }
}

void rtos_load_hog(void *context) {
    rtos_hog_t *hog = context;
    while (!rtos_load_is_over(hog->load)) {
        const int64_t end_us = esp_timer_get_time() + COMPUTE_US;
        while (esp_timer_get_time() < end_us && !rtos_load_is_over(hog->load)) {
            rtos_multiply();
            hog->rounds_count += ROUNDS;
        }
        vTaskDelay(pdMS_TO_TICKS(PAUSE_MS));
    }
}

/* ---- migrate ---- */

/* It computes whenever it is not suspended, on its core alone: the other core has everything else meanwhile,
 * the console included, and by the next wake the two change places. */
void rtos_load_pushing_hog(void *context) {
    rtos_hog_t *hog = context;
    const rtos_load_t *load = hog->load;
    hog->task = xTaskGetCurrentTaskHandle();
    while (!load->over && !load->migrating) { /* until it is suspended, and resumed after a wake */
        vTaskDelay(1);
    }
    int64_t pause_us = esp_timer_get_time() + PUSHING_US;
    while (!load->over) {
        rtos_multiply();
        hog->rounds_count += ROUNDS;
        if (esp_timer_get_time() > pause_us) {
            vTaskDelay(pdMS_TO_TICKS(PAUSE_MS));
            pause_us = esp_timer_get_time() + PUSHING_US;
        }
    }
}

static bool both_known(const rtos_load_t *load) {
    return load->hogs[0].task != NULL && load->hogs[1].task != NULL;
}

static void suspend_both(rtos_load_t *load) {
    vTaskSuspend(load->hogs[0].task);
    vTaskSuspend(load->hogs[1].task);
    vTaskDelay(2); /* so that neither is still on its way to be */
}

void rtos_load_begin(rtos_load_t *load) {
    if (load->kind != RTOS_LOAD_MIGRATE) {
        return;
    }
    while (!both_known(load) && !load->workers->stop) {
        vTaskDelay(1);
    }
    if (both_known(load)) {
        suspend_both(load);
        load->migrating = true;
    }
}

/* As the study's periodic task does: on core 0 the hog of core 1 stops and that of core 0 goes on. */
void rtos_load_after_wake(rtos_load_t *load) {
    if (load->migrating) {
        BaseType_t here = xPortGetCoreID();
        vTaskSuspend(load->hogs[1 - here].task);
        vTaskResume(load->hogs[here].task);
    }
}

/* A hog ends by itself once it is over, so it is suspended first: nobody may resume a task that has ended. */
void rtos_load_end(rtos_load_t *load) {
    if (!load->migrating) {
        load->over = true;
        return;
    }
    suspend_both(load);
    load->migrating = false;
    load->over = true;
    vTaskResume(load->hogs[0].task);
    vTaskResume(load->hogs[1].task);
}
