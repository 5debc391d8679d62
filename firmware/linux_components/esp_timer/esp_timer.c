/* SPDX-License-Identifier: Apache-2.0 */
/* esp_timer for ESP-IDF's linux target: a list in the order of alarms, and a task that calls back one by one.
 *
 * The task wakes with the tick, so that a callback comes up to a tick late. Semantics and return values are
 * those of esp_timer.h; callbacks come from the task only.
 */
#include "esp_timer.h"

#include <time.h>

#include "esp_task.h"
#include "esp_timer_alarms.h"
#include "freertos/FreeRTOS.h"
#include "freertos/semphr.h"
#include "freertos/task.h"

#define TICK_US (1000000 / configTICK_RATE_HZ)

static struct timespec s_boot;
static TaskHandle_t s_task;
static SemaphoreHandle_t s_lock; /* guards what follows, and the timers */
static struct esp_timer *s_armed;

int64_t esp_timer_get_time(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)(now.tv_sec - s_boot.tv_sec) * 1000000 + (now.tv_nsec - s_boot.tv_nsec) / 1000;
}

static void lock(void) {
    xSemaphoreTake(s_lock, portMAX_DELAY);
}

static void unlock(void) {
    xSemaphoreGive(s_lock);
}

static void arm(struct esp_timer *timer, int64_t alarm_us) {
    if (esp_timer_alarms_arm(&s_armed, timer, alarm_us)) {
        xTaskNotifyGive(s_task);
    }
}

/* Take the first timer that is due off the list. Its callback may delete it, so that it is copied. */
static bool take_due(struct esp_timer *due) {
    int64_t now_us = esp_timer_get_time();
    lock();
    struct esp_timer *first = s_armed;
    bool found = first != NULL && first->alarm_us <= now_us;
    if (found) {
        *due = *first;
        esp_timer_alarms_disarm(&s_armed, first);
        if (first->period_us > 0) {
            arm(first, esp_timer_alarms_next_us(first, now_us));
        }
    }
    unlock();
    return found;
}

static TickType_t ticks_to_next_alarm(void) {
    int64_t left_us = esp_timer_get_next_alarm() - esp_timer_get_time();
    if (left_us > (int64_t)60 * 1000000) {
        return pdMS_TO_TICKS(60000);
    }
    return left_us > 0 ? (TickType_t)((left_us + TICK_US - 1) / TICK_US) : 0;
}

static void timer_task(void *unused) {
    (void)unused;
    struct esp_timer due;
    for (;;) {
        while (take_due(&due)) {
            due.callback(due.argument);
        }
        ulTaskNotifyTake(pdTRUE, ticks_to_next_alarm());
    }
}

/* Before main(): on a chip the timers run before app_main(), too. */
__attribute__((constructor)) static void start(void) {
    clock_gettime(CLOCK_MONOTONIC, &s_boot);
    s_lock = xSemaphoreCreateMutex();
    configASSERT(s_lock != NULL);
    BaseType_t created =
        xTaskCreate(timer_task, "esp_timer", ESP_TASK_TIMER_STACK, NULL, ESP_TASK_TIMER_PRIO, &s_task);
    configASSERT(created == pdPASS);
    (void)created;
}

esp_err_t esp_timer_create(const esp_timer_create_args_t *create_args, esp_timer_handle_t *out_handle) {
    if (create_args == NULL || create_args->callback == NULL || out_handle == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    *out_handle = esp_timer_alarms_new(create_args);
    return *out_handle != NULL ? ESP_OK : ESP_ERR_NO_MEM;
}

static esp_err_t start_timer(esp_timer_handle_t timer, uint64_t timeout_us, uint64_t period_us) {
    if (timer == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    lock();
    bool idle = !timer->active;
    if (idle) {
        timer->period_us = period_us;
        arm(timer, esp_timer_get_time() + (int64_t)timeout_us);
    }
    unlock();
    return idle ? ESP_OK : ESP_ERR_INVALID_STATE;
}

esp_err_t esp_timer_start_once(esp_timer_handle_t timer, uint64_t timeout_us) {
    return start_timer(timer, timeout_us, 0);
}

esp_err_t esp_timer_start_periodic(esp_timer_handle_t timer, uint64_t period_us) {
    return start_timer(timer, period_us, period_us);
}

esp_err_t esp_timer_restart(esp_timer_handle_t timer, uint64_t timeout_us) {
    if (timer == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    lock();
    bool active = timer->active;
    if (active) {
        esp_timer_alarms_disarm(&s_armed, timer);
        timer->period_us = timer->period_us > 0 ? timeout_us : 0;
        arm(timer, esp_timer_get_time() + (int64_t)timeout_us);
    }
    unlock();
    return active ? ESP_OK : ESP_ERR_INVALID_STATE;
}

esp_err_t esp_timer_stop(esp_timer_handle_t timer) {
    if (timer == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    lock();
    bool active = timer->active;
    esp_timer_alarms_disarm(&s_armed, timer);
    unlock();
    return active ? ESP_OK : ESP_ERR_INVALID_STATE;
}

bool esp_timer_is_active(esp_timer_handle_t timer) {
    lock();
    bool active = timer != NULL && timer->active;
    unlock();
    return active;
}

int64_t esp_timer_get_next_alarm(void) {
    lock();
    int64_t alarm_us = esp_timer_alarms_first_us(s_armed);
    unlock();
    return alarm_us;
}
