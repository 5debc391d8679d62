/* SPDX-License-Identifier: Apache-2.0 */
/* esp_timer: a list by alarm time, and a task of priority 22 on core 0 that calls back one by one. */
#include "esp_timer.h"

#include <stdio.h>
#include <stdlib.h>

#include "../kernel/kernel.h"
#include "esp_task.h"
#include "esp_timer_alarms.h"
#include "vboard.h"

#define MIN_PERIOD_US 50 /* as on the chip */
#define DUMP_BYTES 4096

static struct esp_timer *s_armed;
static wait_list_t s_timer_task;
static int64_t s_lateness_max_us;
static bool s_started;

/* In the kernel. */
static void arm(struct esp_timer *timer, int64_t alarm_us) {
    if (esp_timer_alarms_arm(&s_armed, timer, alarm_us)) {
        kernel_wake_all(&s_timer_task);
    }
}

static void note_lateness(int64_t lateness_us) {
    if (lateness_us > s_lateness_max_us) {
        __atomic_store_n(&s_lateness_max_us, lateness_us, __ATOMIC_RELAXED);
    }
}

/* In the kernel: sleeps until the first timer is due and takes it off the list. */
static struct esp_timer *wait_for_due(task_t *self) {
    for (;;) {
        int64_t alarm_us = esp_timer_alarms_first_us(s_armed);
        int64_t now_us = vboard_uptime_us();
        if (alarm_us <= now_us) {
            struct esp_timer *due = s_armed;
            esp_timer_alarms_disarm(&s_armed, due);
            /* Whether it was slept for, or came due while another callback ran. */
            note_lateness(now_us - alarm_us);
            return due;
        }
        kernel_block(self, &s_timer_task, alarm_us);
    }
}

static void timer_task(void *argument) {
    (void)argument;
    for (;;) {
        task_t *self = kernel_enter();
        struct esp_timer *due = wait_for_due(self);
        esp_timer_cb_t callback = due->callback;
        void *callback_argument = due->argument;
        if (due->period_us > 0) {
            arm(due, esp_timer_alarms_next_us(due, vboard_uptime_us()));
        }
        kernel_leave(self);
        callback(callback_argument); /* it may stop or delete its timer */
    }
}

esp_err_t esp_timer_init(void) {
    if (__atomic_exchange_n(&s_started, true, __ATOMIC_ACQ_REL)) {
        return ESP_OK;
    }
    BaseType_t created = xTaskCreatePinnedToCore(timer_task, "esp_timer", ESP_TASK_TIMER_STACK, NULL,
                                                 ESP_TASK_TIMER_PRIO, NULL, CONFIG_ESP_TIMER_TASK_AFFINITY);
    return created == pdPASS ? ESP_OK : ESP_ERR_NO_MEM;
}

esp_err_t esp_timer_create(const esp_timer_create_args_t *create_args, esp_timer_handle_t *out_handle) {
    if (create_args == NULL || create_args->callback == NULL || out_handle == NULL ||
        create_args->dispatch_method >= ESP_TIMER_MAX) {
        return ESP_ERR_INVALID_ARG;
    }
    if (!__atomic_load_n(&s_started, __ATOMIC_ACQUIRE)) {
        return ESP_ERR_INVALID_STATE;
    }
    *out_handle = esp_timer_alarms_new(create_args);
    return *out_handle != NULL ? ESP_OK : ESP_ERR_NO_MEM;
}

static esp_err_t start(struct esp_timer *timer, uint64_t delay_us, uint64_t period_us) {
    if (timer == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    esp_err_t result = ESP_ERR_INVALID_STATE;
    task_t *self = kernel_enter();
    if (!timer->active) {
        timer->period_us = period_us;
        arm(timer, vboard_uptime_us() + (int64_t)delay_us);
        result = ESP_OK;
    }
    kernel_leave(self);
    return result;
}

static uint64_t at_least_minimum(uint64_t period_us) {
    return period_us < MIN_PERIOD_US ? MIN_PERIOD_US : period_us;
}

esp_err_t esp_timer_start_once(esp_timer_handle_t timer, uint64_t timeout_us) {
    return start(timer, timeout_us, 0);
}

esp_err_t esp_timer_start_periodic(esp_timer_handle_t timer, uint64_t period) {
    return start(timer, at_least_minimum(period), at_least_minimum(period));
}

esp_err_t esp_timer_restart(esp_timer_handle_t timer, uint64_t timeout_us) {
    if (timer == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    esp_err_t result = ESP_ERR_INVALID_STATE;
    task_t *self = kernel_enter();
    if (timer->active) {
        esp_timer_alarms_disarm(&s_armed, timer);
        timer->period_us = timer->period_us > 0 ? at_least_minimum(timeout_us) : 0;
        arm(timer, vboard_uptime_us() + (int64_t)timeout_us);
        result = ESP_OK;
    }
    kernel_leave(self);
    return result;
}

esp_err_t esp_timer_stop(esp_timer_handle_t timer) {
    if (timer == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    task_t *self = kernel_enter();
    bool active = timer->active;
    if (active) {
        esp_timer_alarms_disarm(&s_armed, timer);
    }
    kernel_leave(self);
    return active ? ESP_OK : ESP_ERR_INVALID_STATE;
}

bool esp_timer_is_active(esp_timer_handle_t timer) {
    task_t *self = kernel_enter();
    bool active = timer != NULL && timer->active;
    kernel_leave(self);
    return active;
}

esp_err_t esp_timer_get_period(esp_timer_handle_t timer, uint64_t *period) {
    if (timer == NULL || period == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    *period = timer->period_us;
    return ESP_OK;
}

esp_err_t esp_timer_get_expiry_time(esp_timer_handle_t timer, uint64_t *expiry) {
    if (timer == NULL || expiry == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    if (timer->period_us > 0) {
        return ESP_ERR_NOT_SUPPORTED;
    }
    *expiry = (uint64_t)timer->alarm_us;
    return ESP_OK;
}

int64_t esp_timer_get_next_alarm(void) {
    task_t *self = kernel_enter();
    int64_t alarm_us = esp_timer_alarms_first_us(s_armed);
    kernel_leave(self);
    return alarm_us;
}

/* In the kernel: lines of the armed timers, as many as fit. */
static void describe(char *text, size_t bytes) {
    size_t used = 0;
    text[0] = '\0';
    for (const struct esp_timer *timer = s_armed; timer != NULL && used < bytes; timer = timer->next) {
        used +=
            (size_t)snprintf(text + used, bytes - used, "timer@%-14p  %-10lld  %-12lld\n",
                             (const void *)timer, (long long)timer->period_us, (long long)timer->alarm_us);
    }
}

esp_err_t esp_timer_dump(FILE *stream) {
    char *text = malloc(DUMP_BYTES);
    if (text == NULL) {
        return ESP_ERR_NO_MEM;
    }
    task_t *self = kernel_enter();
    describe(text, DUMP_BYTES);
    kernel_leave(self);
    if (stream != NULL) {
        fprintf(stream, "Timer stats:\n%-20s  %-10s  %-12s\n%s", "Name", "Period", "Alarm", text);
    }
    free(text);
    return ESP_OK;
}

int64_t esp_timer_get_time(void) {
    return vboard_uptime_us();
}

int64_t vboard_timer_lateness_max_us(void) {
    return __atomic_load_n(&s_lateness_max_us, __ATOMIC_RELAXED);
}

void vboard_timer_lateness_reset(void) {
    __atomic_store_n(&s_lateness_max_us, 0, __ATOMIC_RELAXED);
}
