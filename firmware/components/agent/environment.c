/* SPDX-License-Identifier: Apache-2.0 */
#include "environment.h"

#include <stdio.h>

#include "agent/agent.h"
#include "agent/samples.h"
#include "cpu_load.h"
#include "esp_heap_caps.h"
#include "esp_timer.h"
#include "freertos/FreeRTOS.h"
#include "freertos/task.h"
#include "identity.h"
#include "link.h"
#include "port/port.h"
#include "quiet.h"

enum { KEY_SIZE = 64 };
#define STACK_KEY "%sstack_free_min_%s_bytes"

/* Tasks whose stacks matter to every bench; one that does not exist is left out. */
static const char *const TASKS[] = {"agent_console", "agent_run", "mqtt_task", "tiT", "wifi"};

static void write_stacks(wire_line_t *line) {
    for (size_t i = 0; i < sizeof(TASKS) / sizeof(TASKS[0]); i++) {
        TaskHandle_t task = xTaskGetHandle(TASKS[i]);
        if (task == NULL) {
            continue;
        }
        char key[KEY_SIZE];
        snprintf(key, sizeof(key), STACK_KEY, port_memory_prefix(), TASKS[i]);
        wire_line_int(line, key, (int64_t)uxTaskGetStackHighWaterMark(task)); /* bytes, in ESP-IDF */
    }
}

static void write_heap(wire_line_t *line, const char *name, size_t bytes) {
    char key[KEY_SIZE];
    snprintf(key, sizeof(key), "%s%s", port_memory_prefix(), name);
    wire_line_int(line, key, (int64_t)bytes);
}

static void write_link(const char *key, const char *value, void *context) {
    wire_line_text(context, key, value);
}

void environment_write(wire_line_t *line) {
    wire_line_int(line, "uptime_us", esp_timer_get_time());
    wire_line_text(line, "reset_reason", identity()->reset_reason);
    wire_line_int(line, "tick_hz", configTICK_RATE_HZ);
    write_heap(line, "heap_free_bytes", heap_caps_get_free_size(MALLOC_CAP_8BIT));
    write_heap(line, "heap_min_bytes", heap_caps_get_minimum_free_size(MALLOC_CAP_8BIT));
    write_stacks(line);
    cpu_load_write(line);
    port_environment_write(line);
    if (agent_config()->hold_log) {
        wire_line_int(line, "log_dropped_bytes", (int64_t)quiet_dropped_bytes());
    } else {
        wire_line_text(line, "log", "real"); /* it was printed while the clock ran */
    }
    link_environment(write_link, line);
}

void bench_environment_stack(bench_samples_t *samples, const char *task_name, uint32_t free_min_bytes) {
    char key[KEY_SIZE];
    snprintf(key, sizeof(key), STACK_KEY, port_memory_prefix(), task_name);
    bench_environment_int(samples, key, free_min_bytes);
}
