/* SPDX-License-Identifier: Apache-2.0 */
/* Ends as told by CRASH in the environment: for the harness to see what a crash looks like on the console. */
#include "esp_check.h"
#include "esp_system.h"
#include "esp_task_wdt.h"
#include "idf_check.h"
#include "rtos/interrupt.h"

static void say_goodbye(void) {
    printf("shutting down\n");
}

__attribute__((noinline)) static int overflow(volatile char *above, int depth) {
    volatile char frame[4096];
    frame[0] = above[0];
    return depth == 0 ? frame[0] : overflow(frame, depth - 1) + frame[0];
}

static void stay_silent(void) {
    const esp_task_wdt_config_t config = {.timeout_ms = 20, .trigger_panic = true};
    ESP_ERROR_CHECK(esp_task_wdt_reconfigure(&config));
    ESP_ERROR_CHECK(esp_task_wdt_add(NULL));
    vTaskDelay(portMAX_DELAY);
}

static bool wait_in_interrupt(void *context) {
    (void)context;
    vTaskDelay(1);
    return false;
}

static void wait_in_an_interrupt(void) {
    ESP_ERROR_CHECK(rtos_interrupt_install(wait_in_interrupt, NULL));
    rtos_interrupt_raise();
}

void app_main(void) {
    const char *how = getenv("CRASH");
    volatile uintptr_t nowhere = 0x10;
    volatile char start = 0;
    printf("reset reason %d\n", (int)esp_reset_reason());
    if (how == NULL) {
        exit(0);
    } else if (strcmp(how, "restart") == 0) {
        ESP_ERROR_CHECK(esp_register_shutdown_handler(say_goodbye));
        esp_restart();
    } else if (strcmp(how, "assert") == 0) {
        assert(start == 1);
    } else if (strcmp(how, "check") == 0) {
        ESP_ERROR_CHECK(ESP_ERR_TIMEOUT);
    } else if (strcmp(how, "load") == 0) {
        start = *(volatile char *)nowhere;
    } else if (strcmp(how, "stack") == 0) {
        start = (char)overflow(&start, 100000);
    } else if (strcmp(how, "watchdog") == 0) {
        stay_silent();
    } else if (strcmp(how, "interrupt") == 0) {
        wait_in_an_interrupt();
    } else if (strcmp(how, "return") == 0) {
        return;
    }
    _exit(1);
}
