/* SPDX-License-Identifier: Apache-2.0 */
#include "esp_timer_alarms.h"

#include <stdlib.h>

struct esp_timer *esp_timer_alarms_new(const esp_timer_create_args_t *create_args) {
    struct esp_timer *timer = calloc(1, sizeof *timer);
    if (timer != NULL) {
        timer->callback = create_args->callback;
        timer->argument = create_args->arg;
        timer->name = create_args->name;
        timer->skip_unhandled_events = create_args->skip_unhandled_events;
    }
    return timer;
}

esp_err_t esp_timer_delete(esp_timer_handle_t timer) {
    if (timer == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    if (esp_timer_is_active(timer)) {
        return ESP_ERR_INVALID_STATE;
    }
    free(timer);
    return ESP_OK;
}

bool esp_timer_alarms_arm(struct esp_timer **armed, struct esp_timer *timer, int64_t alarm_us) {
    struct esp_timer **link = armed;
    while (*link != NULL && (*link)->alarm_us <= alarm_us) {
        link = &(*link)->next;
    }
    timer->alarm_us = alarm_us;
    timer->active = true;
    timer->next = *link;
    *link = timer;
    return *armed == timer;
}

void esp_timer_alarms_disarm(struct esp_timer **armed, struct esp_timer *timer) {
    struct esp_timer **link = armed;
    while (*link != NULL && *link != timer) {
        link = &(*link)->next;
    }
    if (*link == timer) {
        *link = timer->next;
    }
    timer->active = false;
}

int64_t esp_timer_alarms_first_us(const struct esp_timer *armed) {
    return armed != NULL ? armed->alarm_us : INT64_MAX;
}

int64_t esp_timer_alarms_next_us(const struct esp_timer *timer, int64_t now_us) {
    int64_t period_us = (int64_t)timer->period_us;
    int64_t alarm_us = timer->alarm_us + period_us;
    if (timer->skip_unhandled_events && alarm_us <= now_us) {
        alarm_us += (now_us - alarm_us + period_us) / period_us * period_us;
    }
    return alarm_us;
}
