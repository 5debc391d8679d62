/* SPDX-License-Identifier: Apache-2.0 */
/* The counter runs freely at 1 MHz and the interrupt sets the next alarm, so that the grid is absolute: an
 * alarm that was served late moves none of those that follow. */
#include "rtos/alarm.h"

#include "driver/gptimer.h"
#include "esp_timer.h"

enum { READINGS = 8 };

static esp_err_t set_alarm(rtos_alarm_t *alarm) {
    const gptimer_alarm_config_t action = {.alarm_count = alarm->next_count};
    return gptimer_set_alarm_action(alarm->timer, &action);
}

static bool on_alarm(gptimer_handle_t timer, const gptimer_alarm_event_data_t *event, void *context) {
    rtos_alarm_t *alarm = context;
    const int64_t now_us = esp_timer_get_time();
    bool woken = false;
    (void)timer;
    do {
        woken |= alarm->on_alarm(alarm->context, now_us);
        alarm->next_count += alarm->period_us;
    } while (alarm->next_count <= event->count_value);
    (void)set_alarm(alarm);
    return woken;
}

/* What esp_timer shows when the counter shows 0. Both count microseconds of one crystal: the narrowest of a
 * few pairs of readings is within its width. */
static int64_t find_zero_us(gptimer_handle_t timer, uint32_t *width_us) {
    int64_t zero_us = 0;
    *width_us = UINT32_MAX;
    for (int i = 0; i < READINGS; i++) {
        uint64_t count = 0;
        int64_t before_us = esp_timer_get_time();
        (void)gptimer_get_raw_count(timer, &count);
        int64_t after_us = esp_timer_get_time();
        if ((uint32_t)(after_us - before_us) < *width_us) {
            *width_us = (uint32_t)(after_us - before_us);
            zero_us = before_us + (after_us - before_us) / 2 - (int64_t)count;
        }
    }
    return zero_us;
}

static esp_err_t run_counter(rtos_alarm_t *alarm) {
    const gptimer_event_callbacks_t callbacks = {.on_alarm = on_alarm};
    esp_err_t err = gptimer_register_event_callbacks(alarm->timer, &callbacks, alarm);
    err = err != ESP_OK ? err : gptimer_enable(alarm->timer);
    return err != ESP_OK ? err : gptimer_start(alarm->timer);
}

esp_err_t rtos_alarm_start(rtos_alarm_t *alarm, int64_t *first_us, uint32_t *error_us) {
    const gptimer_config_t config = {
        .clk_src = GPTIMER_CLK_SRC_DEFAULT,
        .direction = GPTIMER_COUNT_UP,
        .resolution_hz = 1000000,
    };
    gptimer_handle_t timer = NULL;
    esp_err_t err = gptimer_new_timer(&config, &timer);
    alarm->timer = timer;
    err = err != ESP_OK ? err : run_counter(alarm);
    if (err != ESP_OK) {
        return err;
    }
    const int64_t zero_us = find_zero_us(timer, error_us);
    alarm->next_count = (uint64_t)(esp_timer_get_time() - zero_us) + alarm->period_us;
    *first_us = zero_us + (int64_t)alarm->next_count;
    return set_alarm(alarm);
}

void rtos_alarm_stop(rtos_alarm_t *alarm) {
    if (alarm->timer == NULL) {
        return;
    }
    (void)gptimer_stop(alarm->timer); /* refused where it never ran */
    (void)gptimer_disable(alarm->timer);
    (void)gptimer_del_timer(alarm->timer);
    alarm->timer = NULL;
}
