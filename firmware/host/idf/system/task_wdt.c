/* SPDX-License-Identifier: Apache-2.0 */
/* Task watchdog: a task of the highest priority looks for subscribed tasks that did not reset in time. It
 * runs from the first subscription on, so that it does not disturb a firmware that has none. */
#include "esp_task_wdt.h"

#include <stdlib.h>
#include <string.h>

#include "esp_log.h"
#include "esp_system.h"
#include "freertos/semphr.h"

#define MAX_TASKS 16
#define WATCHDOG_PRIORITY (configMAX_PRIORITIES - 1)
#define WATCHDOG_STACK_BYTES 2048

static const char *TAG = "task_wdt";
static portMUX_TYPE s_lock = portMUX_INITIALIZER_UNLOCKED;
static bool s_initialised;
static TickType_t s_timeout;
static bool s_trigger_panic;
static TaskHandle_t s_watchdog;
static struct {
    TaskHandle_t task; /* NULL: free */
    TickType_t reset_at;
} s_entries[MAX_TASKS];

static TaskHandle_t or_current(TaskHandle_t task) {
    return task != NULL ? task : xTaskGetCurrentTaskHandle();
}

/* In the critical section. -1 when there is no entry for this task; NULL finds a free one. */
static int find(TaskHandle_t task) {
    for (int i = 0; i < MAX_TASKS; i++) {
        if (s_entries[i].task == task) {
            return i;
        }
    }
    return -1;
}

static void trigger(TaskHandle_t late) {
    ESP_LOGE(TAG,
             "Task watchdog got triggered. The following tasks/users did not reset the watchdog in time:");
    ESP_LOGE(TAG, " - %s", pcTaskGetName(late));
    if (__atomic_load_n(&s_trigger_panic, __ATOMIC_RELAXED)) {
        ESP_LOGE(TAG, "Aborting.");
        abort();
    }
}

/* The first task that is late gets a new term, so that it is reported once a time-out. */
static TaskHandle_t take_late_task(TickType_t now, TickType_t timeout) {
    TaskHandle_t late = NULL;
    portENTER_CRITICAL(&s_lock);
    for (int i = 0; i < MAX_TASKS && late == NULL; i++) {
        if (s_entries[i].task != NULL && now - s_entries[i].reset_at > timeout) {
            late = s_entries[i].task;
            s_entries[i].reset_at = now;
        }
    }
    portEXIT_CRITICAL(&s_lock);
    return late;
}

static void watch(void *argument) {
    (void)argument;
    for (;;) {
        TickType_t timeout = __atomic_load_n(&s_timeout, __ATOMIC_RELAXED);
        vTaskDelay(timeout >= 8 ? timeout / 8 : 1);
        TaskHandle_t late = take_late_task(xTaskGetTickCount(), timeout);
        if (late != NULL) {
            trigger(late);
        }
    }
}

static bool is_valid(const esp_task_wdt_config_t *config) {
    return config != NULL && config->idle_core_mask < 1U << portNUM_PROCESSORS;
}

esp_err_t esp_task_wdt_reconfigure(const esp_task_wdt_config_t *config) {
    if (!is_valid(config)) {
        return ESP_ERR_INVALID_ARG;
    }
    if (!s_initialised) {
        return ESP_ERR_INVALID_STATE;
    }
    __atomic_store_n(&s_timeout, pdMS_TO_TICKS(config->timeout_ms), __ATOMIC_RELAXED);
    __atomic_store_n(&s_trigger_panic, config->trigger_panic, __ATOMIC_RELAXED);
    return ESP_OK;
}

esp_err_t esp_task_wdt_init(const esp_task_wdt_config_t *config) {
    if (!is_valid(config) || s_initialised) {
        return is_valid(config) ? ESP_ERR_INVALID_STATE : ESP_ERR_INVALID_ARG;
    }
    s_initialised = true;
    memset(s_entries, 0, sizeof s_entries);
    return esp_task_wdt_reconfigure(config);
}

/* In the critical section. */
static bool is_empty(void) {
    for (int i = 0; i < MAX_TASKS; i++) {
        if (s_entries[i].task != NULL) {
            return false;
        }
    }
    return true;
}

esp_err_t esp_task_wdt_deinit(void) {
    portENTER_CRITICAL(&s_lock);
    bool in_use = !is_empty();
    portEXIT_CRITICAL(&s_lock);
    if (!s_initialised || in_use) {
        return ESP_ERR_INVALID_STATE;
    }
    if (s_watchdog != NULL) {
        vTaskDelete(s_watchdog);
        s_watchdog = NULL;
    }
    s_initialised = false;
    return ESP_OK;
}

/* Sets the entry of `from` to `to` with a new term. */
static bool replace(TaskHandle_t from, TaskHandle_t to) {
    portENTER_CRITICAL(&s_lock);
    int index = find(from);
    if (index >= 0) {
        s_entries[index].task = to;
        s_entries[index].reset_at = xTaskGetTickCount();
    }
    portEXIT_CRITICAL(&s_lock);
    return index >= 0;
}

esp_err_t esp_task_wdt_status(TaskHandle_t task_handle) {
    if (!s_initialised) {
        return ESP_ERR_INVALID_STATE;
    }
    portENTER_CRITICAL(&s_lock);
    int index = find(or_current(task_handle));
    portEXIT_CRITICAL(&s_lock);
    return index >= 0 ? ESP_OK : ESP_ERR_NOT_FOUND;
}

esp_err_t esp_task_wdt_add(TaskHandle_t task_handle) {
    if (esp_task_wdt_status(task_handle) != ESP_ERR_NOT_FOUND) {
        return s_initialised ? ESP_ERR_INVALID_ARG : ESP_ERR_INVALID_STATE;
    }
    if (s_watchdog == NULL &&
        xTaskCreate(watch, TAG, WATCHDOG_STACK_BYTES, NULL, WATCHDOG_PRIORITY, &s_watchdog) != pdPASS) {
        return ESP_ERR_NO_MEM;
    }
    return replace(NULL, or_current(task_handle)) ? ESP_OK : ESP_ERR_NO_MEM;
}

esp_err_t esp_task_wdt_reset(void) {
    TaskHandle_t self = xTaskGetCurrentTaskHandle();
    if (!s_initialised) {
        return ESP_ERR_INVALID_STATE;
    }
    return replace(self, self) ? ESP_OK : ESP_ERR_NOT_FOUND;
}

esp_err_t esp_task_wdt_delete(TaskHandle_t task_handle) {
    if (!s_initialised) {
        return ESP_ERR_INVALID_STATE;
    }
    return replace(or_current(task_handle), NULL) ? ESP_OK : ESP_ERR_INVALID_ARG;
}
