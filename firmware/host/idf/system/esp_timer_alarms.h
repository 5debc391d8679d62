/* SPDX-License-Identifier: Apache-2.0 */
/* Timers, and a list of the armed ones in the order of their alarms: what this host's esp_timer and that of
 * ESP-IDF's linux target have in common. Each has its own task, clock and lock; who calls holds the lock. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "esp_timer.h"

struct esp_timer {
    esp_timer_cb_t callback;
    void *argument;
    const char *name;
    bool skip_unhandled_events;
    bool active;
    int64_t alarm_us;
    uint64_t period_us; /* 0: once */
    struct esp_timer *next;
};

/* Returns NULL where there is no memory for it. esp_timer_delete() frees it. */
struct esp_timer *esp_timer_alarms_new(const esp_timer_create_args_t *create_args);

/* First come first among equal alarms. Returns whether the timer is now the first of the list. */
bool esp_timer_alarms_arm(struct esp_timer **armed, struct esp_timer *timer, int64_t alarm_us);
void esp_timer_alarms_disarm(struct esp_timer **armed, struct esp_timer *timer);

/* When the first timer of the list is due; INT64_MAX where none is armed. */
int64_t esp_timer_alarms_first_us(const struct esp_timer *armed);

/* The alarm of a periodic timer that follows the one that is due now. */
int64_t esp_timer_alarms_next_us(const struct esp_timer *timer, int64_t now_us);
