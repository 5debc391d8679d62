/* SPDX-License-Identifier: Apache-2.0 */
/* What the trace costs: prints it, and expects nothing of it (docs/explain/tracing.md quotes it). */
#include "idf_check.h"
#include "trace/hooks.h"

#define ROUND_TRIPS 5000
#define HOOKS 200000

static TaskHandle_t s_here, s_there;

static void answer(void *argument) {
    (void)argument;
    for (;;) {
        (void)ulTaskNotifyTake(pdTRUE, portMAX_DELAY);
        xTaskNotifyGive(s_here);
    }
}

/* There and back is two switches on one core. */
static void print_switch(const char *how) {
    int64_t began_us = esp_timer_get_time();
    for (int i = 0; i < ROUND_TRIPS; i++) {
        xTaskNotifyGive(s_there);
        (void)ulTaskNotifyTake(pdTRUE, portMAX_DELAY);
    }
    int64_t took_us = esp_timer_get_time() - began_us;
    printf("%-22s %6lld ns a switch\n", how, (long long)(took_us * 1000 / (2 * ROUND_TRIPS)));
}

static void print_hook(const char *how) {
    int64_t began_us = esp_timer_get_time();
    for (int i = 0; i < HOOKS; i++) {
        TRACE_HOOK(trace_hook_task(TRACE_READY, s_there, 1, 1));
    }
    int64_t took_us = esp_timer_get_time() - began_us;
    printf("%-22s %6.1f ns a hook\n", how, (double)took_us * 1000 / HOOKS);
}

static void measure(void *argument) {
    (void)argument;
    s_here = xTaskGetCurrentTaskHandle();
    s_there = spawn(answer, NULL, 5, 0);
    print_switch("warming up");
    for (int round = 0; round < 2; round++) {
        print_switch("never started");
        print_hook("never started");
        trace_start();
        print_switch("recording");
        print_hook("recording");
        trace_freeze(0);
        trace_mark(TRACE_MARK_WOKE, 0);
        print_switch("frozen");
        print_hook("frozen");
        trace_stop();
    }
    _exit(0);
}

void app_main(void) {
    spawn(measure, NULL, 6, 0);
    vTaskDelay(portMAX_DELAY);
}
