/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "esp_err.h"
#include "sdkconfig.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct esp_timer *esp_timer_handle_t;
typedef void (*esp_timer_cb_t)(void *arg);

typedef enum {
    ESP_TIMER_TASK, /* the only method: the host has no interrupts */
    ESP_TIMER_MAX,
} esp_timer_dispatch_t;

typedef struct {
    esp_timer_cb_t callback;
    void *arg;
    esp_timer_dispatch_t dispatch_method;
    const char *name;
    bool skip_unhandled_events;
} esp_timer_create_args_t;

/* Idempotent; the start-up code calls it, a program with its own main() may. */
esp_err_t esp_timer_init(void);

esp_err_t esp_timer_create(const esp_timer_create_args_t *create_args, esp_timer_handle_t *out_handle);
esp_err_t esp_timer_start_once(esp_timer_handle_t timer, uint64_t timeout_us);
esp_err_t esp_timer_start_periodic(esp_timer_handle_t timer, uint64_t period);
esp_err_t esp_timer_restart(esp_timer_handle_t timer, uint64_t timeout_us);
esp_err_t esp_timer_stop(esp_timer_handle_t timer);
esp_err_t esp_timer_delete(esp_timer_handle_t timer);
/* Microseconds since the board's reset (VBOARD_BOOT_US). */
int64_t esp_timer_get_time(void);
int64_t esp_timer_get_next_alarm(void);
esp_err_t esp_timer_get_period(esp_timer_handle_t timer, uint64_t *period);
esp_err_t esp_timer_get_expiry_time(esp_timer_handle_t timer, uint64_t *expiry);
bool esp_timer_is_active(esp_timer_handle_t timer);
/* The timers that run, in the order of their alarms. */
esp_err_t esp_timer_dump(FILE *stream);

#ifdef __cplusplus
}
#endif
