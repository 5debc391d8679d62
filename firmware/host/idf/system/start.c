/* SPDX-License-Identifier: Apache-2.0 */
/* From the program's start to app_main(). */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "esp_app_desc.h"
#include "esp_log.h"
#include "esp_system.h"
#include "esp_task.h"
#include "esp_task_wdt.h"
#include "esp_timer.h"
#include "freertos/task.h"
#include "heap.h"
#include "panic.h"
#include "vboard.h"
#include "watchdogs.h"

#define UART_BUFFER_BYTES 8192

void app_main(void);

static void start_task_watchdog(void) {
#if CONFIG_ESP_TASK_WDT_INIT
    esp_task_wdt_config_t config = {.timeout_ms = CONFIG_ESP_TASK_WDT_TIMEOUT_S * 1000};
#if CONFIG_ESP_TASK_WDT_CHECK_IDLE_TASK_CPU0
    config.idle_core_mask |= 1U << 0;
#endif
#if CONFIG_ESP_TASK_WDT_CHECK_IDLE_TASK_CPU1
    config.idle_core_mask |= 1U << 1;
#endif
#if CONFIG_ESP_TASK_WDT_PANIC
    config.trigger_panic = true;
#endif
    ESP_ERROR_CHECK(esp_task_wdt_init(&config));
#endif
}

static void main_task(void *argument) {
    (void)argument;
    start_task_watchdog();
    ESP_LOGI("main_task", "Started on CPU%d", (int)xPortGetCoreID());
    ESP_LOGI("main_task", "Calling app_main()");
    app_main();
    ESP_LOGI("main_task", "Returned from app_main()");
    vTaskDelete(NULL);
}

/* Line by line, one write each: a line is never cut by another task's. */
static void open_uart(void) {
    static char buffer[UART_BUFFER_BYTES];
    setvbuf(stdout, buffer, _IOLBF, sizeof buffer);
    signal(SIGPIPE, SIG_IGN); /* lwIP has no signals: a closed connection is an error of send() */
}

static void print_application(void) {
    const esp_app_desc_t *description = esp_app_get_description();
    ESP_LOGI("app_init", "Project name:     %.32s", description->project_name);
    ESP_LOGI("app_init", "App version:      %.32s", description->version);
    ESP_LOGI("app_init", "ESP-IDF:          %.32s", description->idf_ver);
}

int main(void) {
    open_uart();
    panic_init();
    heap_init();
    print_application();
    ESP_ERROR_CHECK(esp_timer_init());
    watchdogs_start();
    TaskHandle_t task = NULL;
    if (xTaskCreatePinnedToCore(main_task, "main", ESP_TASK_MAIN_STACK, NULL, ESP_TASK_MAIN_PRIO, &task,
                                ESP_TASK_MAIN_CORE) != pdPASS) {
        perror("task main");
        return EXIT_FAILURE;
    }
    for (;;) {
        pause();
    }
}
