/* SPDX-License-Identifier: Apache-2.0 */
/* Task watchdog: a task of the highest priority looks for subscribed tasks that did not reset in time. It
 * runs from the first subscription on, so that it does not disturb a firmware that has none. The idle tasks
 * are looked after in watchdogs.c. */
#include "esp_task_wdt.h"

#include <stdlib.h>
#include <string.h>

#include "esp_log.h"
#include "esp_system.h"
#include "freertos/semphr.h"
#include "panic.h"
#include "task_wdt.h"

#define MAX_TASKS 16
#define WATCHDOG_PRIORITY (configMAX_PRIORITIES - 1)
#define WATCHDOG_STACK_BYTES 2048

static const char *TAG = "task_wdt";
static portMUX_TYPE s_lock = portMUX_INITIALIZER_UNLOCKED;
static bool s_initialised;
static TickType_t s_timeout;
static bool s_trigger_panic;
static uint32_t s_idle_cores;
static TaskHandle_t s_watchdog;
static struct {
    const void *who;  /* a task, or an entry that is a user; NULL: free */
    const char *user; /* its name; NULL of a task */
    TickType_t reset_at;
} s_entries[MAX_TASKS];

static TaskHandle_t or_current(TaskHandle_t task) {
    return task != NULL ? task : xTaskGetCurrentTaskHandle();
}

/* In the critical section. -1 when there is no entry for this task or user; NULL finds a free one. */
static int find(const void *who) {
    for (int i = 0; i < MAX_TASKS; i++) {
        if (s_entries[i].who == who) {
            return i;
        }
    }
    return -1;
}

static void panic_if_set(void) {
    if (__atomic_load_n(&s_trigger_panic, __ATOMIC_RELAXED)) {
        ESP_EARLY_LOGE(TAG, "Aborting.");
        panic_task_watchdog();
    }
}

static void trigger(const char *late) {
    ESP_LOGE(TAG,
             "Task watchdog got triggered. The following tasks/users did not reset the watchdog in time:");
    ESP_LOGE(TAG, " - %s", late);
    panic_if_set();
}

idle_watch_t task_wdt_idle_watch(void) {
    const TickType_t timeout = __atomic_load_n(&s_timeout, __ATOMIC_RELAXED);
    const bool there = __atomic_load_n(&s_initialised, __ATOMIC_RELAXED);
    return (idle_watch_t){.timeout_ms = pdTICKS_TO_MS(timeout),
                          .core_mask = there ? __atomic_load_n(&s_idle_cores, __ATOMIC_RELAXED) : 0};
}

/* Not by the log's functions: they are the firmware's, and may wait for what it holds. */
void task_wdt_trigger_idle(BaseType_t core, const char *running) {
    char name[] = "IDLE0";
    name[sizeof name - 2] = portNUM_PROCESSORS == 1 ? '\0' : (char)('0' + core);
    ESP_EARLY_LOGE(
        TAG, "Task watchdog got triggered. The following tasks/users did not reset the watchdog in time:");
    ESP_EARLY_LOGE(TAG, " - %s (CPU %d)", name, (int)core);
    ESP_EARLY_LOGE(TAG, "Tasks currently running:");
    ESP_EARLY_LOGE(TAG, "CPU %d: %s", (int)core, running);
    panic_if_set();
}

/* The first one that is late gets a new term, so that it is reported once a time-out. Returns its name. */
static const char *take_late(TickType_t now, TickType_t timeout) {
    const char *late = NULL;
    portENTER_CRITICAL(&s_lock);
    for (int i = 0; i < MAX_TASKS && late == NULL; i++) {
        if (s_entries[i].who != NULL && now - s_entries[i].reset_at > timeout) {
            late = s_entries[i].user;
            late = late != NULL ? late : pcTaskGetName((TaskHandle_t)(uintptr_t)s_entries[i].who);
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
        const char *late = take_late(xTaskGetTickCount(), timeout);
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
    __atomic_store_n(&s_idle_cores, config->idle_core_mask, __ATOMIC_RELAXED);
    return ESP_OK;
}

esp_err_t esp_task_wdt_init(const esp_task_wdt_config_t *config) {
    if (!is_valid(config) || s_initialised) {
        return is_valid(config) ? ESP_ERR_INVALID_STATE : ESP_ERR_INVALID_ARG;
    }
    __atomic_store_n(&s_initialised, true, __ATOMIC_RELAXED);
    memset(s_entries, 0, sizeof s_entries);
    return esp_task_wdt_reconfigure(config);
}

/* In the critical section. */
static bool is_empty(void) {
    for (int i = 0; i < MAX_TASKS; i++) {
        if (s_entries[i].who != NULL) {
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
    __atomic_store_n(&s_initialised, false, __ATOMIC_RELAXED);
    return ESP_OK;
}

/* Sets the entry of `from` to `to` with a new term. */
static bool replace(const void *from, const void *to) {
    portENTER_CRITICAL(&s_lock);
    int index = find(from);
    if (index >= 0) {
        s_entries[index].who = to;
        s_entries[index].user = to != NULL ? s_entries[index].user : NULL;
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

static bool start_watching(void) {
    return s_watchdog != NULL ||
           xTaskCreate(watch, TAG, WATCHDOG_STACK_BYTES, NULL, WATCHDOG_PRIORITY, &s_watchdog) == pdPASS;
}

esp_err_t esp_task_wdt_add(TaskHandle_t task_handle) {
    if (esp_task_wdt_status(task_handle) != ESP_ERR_NOT_FOUND) {
        return s_initialised ? ESP_ERR_INVALID_ARG : ESP_ERR_INVALID_STATE;
    }
    if (!start_watching()) {
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

esp_err_t esp_task_wdt_add_user(const char *user_name, esp_task_wdt_user_handle_t *user_handle_ret) {
    if (!s_initialised) {
        return ESP_ERR_INVALID_STATE;
    }
    if (user_name == NULL || user_handle_ret == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    if (!start_watching()) {
        return ESP_ERR_NO_MEM;
    }
    portENTER_CRITICAL(&s_lock);
    int index = find(NULL);
    if (index >= 0) {
        s_entries[index].who = &s_entries[index];
        s_entries[index].user = user_name;
        s_entries[index].reset_at = xTaskGetTickCount();
        *user_handle_ret = (esp_task_wdt_user_handle_t)(void *)&s_entries[index];
    }
    portEXIT_CRITICAL(&s_lock);
    return index >= 0 ? ESP_OK : ESP_ERR_NO_MEM;
}

esp_err_t esp_task_wdt_reset_user(esp_task_wdt_user_handle_t user_handle) {
    if (!s_initialised || user_handle == NULL) {
        return s_initialised ? ESP_ERR_INVALID_ARG : ESP_ERR_INVALID_STATE;
    }
    return replace(user_handle, user_handle) ? ESP_OK : ESP_ERR_NOT_FOUND;
}

esp_err_t esp_task_wdt_delete_user(esp_task_wdt_user_handle_t user_handle) {
    if (!s_initialised || user_handle == NULL) {
        return s_initialised ? ESP_ERR_INVALID_ARG : ESP_ERR_INVALID_STATE;
    }
    return replace(user_handle, NULL) ? ESP_OK : ESP_ERR_NOT_FOUND;
}
