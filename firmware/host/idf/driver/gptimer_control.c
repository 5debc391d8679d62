/* SPDX-License-Identifier: Apache-2.0 */
/* What is done with a timer: its states, its count and its alarm. The hardware is counter.c. */
#include "esp_check.h"
#include "freertos/task.h"
#include "gptimer_priv.h"

static const char *const TAG = "gptimer";

/* When the interrupt is due, rounded up to the microseconds that it waits by. */
static int64_t uptime_us(int64_t ns) {
    return ns == COUNTER_NEVER_NS ? INT64_MAX : (ns + 999) / 1000;
}

static bool interrupts(const struct gptimer_t *timer) {
    return timer->state != STATE_INIT && timer->on_alarm != NULL;
}

/* What was set may have moved the alarm. From an interrupt nothing is to be done: its service looks again. */
static void alarm_may_have_moved(gptimer_handle_t timer) {
    if (timer->interrupt != NULL) {
        vboard_interrupt_raise(timer->interrupt);
    }
}

/* NULL where there is nothing to tell anyone. */
static gptimer_alarm_cb_t take_alarm(gptimer_handle_t timer, gptimer_alarm_event_data_t *event) {
    portENTER_CRITICAL_ISR(&timer->lock);
    int64_t now = vboard_uptime_ns();
    bool taken = interrupts(timer) && counter_take_alarm(&timer->counter, now);
    gptimer_alarm_cb_t callback = taken ? timer->on_alarm : NULL;
    *event = (gptimer_alarm_event_data_t){.count_value = counter_read(&timer->counter, now),
                                          .alarm_value = timer->counter.alarm.alarm_count};
    portEXIT_CRITICAL_ISR(&timer->lock);
    return callback;
}

static int64_t next_alarm_us(gptimer_handle_t timer) {
    portENTER_CRITICAL_ISR(&timer->lock);
    int64_t next_ns = interrupts(timer) ? counter_next_ns(&timer->counter) : COUNTER_NEVER_NS;
    portEXIT_CRITICAL_ISR(&timer->lock);
    return uptime_us(next_ns);
}

static int64_t serve(void *context) {
    gptimer_handle_t timer = context;
    gptimer_alarm_event_data_t event;
    gptimer_alarm_cb_t callback = take_alarm(timer, &event);
    if (callback != NULL) {
        (void)callback(timer, &event, timer->user_data);
    }
    return next_alarm_us(timer);
}

esp_err_t gptimer_set_raw_count(gptimer_handle_t timer, uint64_t value) {
    if (timer == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    portENTER_CRITICAL_SAFE(&timer->lock);
    counter_write(&timer->counter, value, vboard_uptime_ns());
    portEXIT_CRITICAL_SAFE(&timer->lock);
    alarm_may_have_moved(timer);
    return ESP_OK;
}

esp_err_t gptimer_get_raw_count(gptimer_handle_t timer, uint64_t *value) {
    if (timer == NULL || value == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    portENTER_CRITICAL_SAFE(&timer->lock);
    *value = counter_read(&timer->counter, vboard_uptime_ns());
    portEXIT_CRITICAL_SAFE(&timer->lock);
    return ESP_OK;
}

static esp_err_t install(gptimer_handle_t timer) {
    ESP_RETURN_ON_FALSE(timer->state == STATE_INIT, ESP_ERR_INVALID_STATE, TAG, "timer not in init state");
    timer->interrupt = vboard_interrupt_new(xPortGetCoreID(), serve, timer);
    return timer->interrupt != NULL ? ESP_OK : ESP_ERR_NO_MEM;
}

esp_err_t gptimer_register_event_callbacks(gptimer_handle_t timer, const gptimer_event_callbacks_t *cbs,
                                           void *user_data) {
    ESP_RETURN_ON_FALSE(timer && cbs, ESP_ERR_INVALID_ARG, TAG, "invalid argument");
    if (timer->interrupt == NULL) {
        ESP_RETURN_ON_ERROR(install(timer), TAG, "install interrupt service failed");
    }
    portENTER_CRITICAL(&timer->lock);
    timer->on_alarm = cbs->on_alarm;
    timer->user_data = user_data;
    portEXIT_CRITICAL(&timer->lock);
    alarm_may_have_moved(timer);
    return ESP_OK;
}

/* Without a configuration it stays where it was, off. */
static counter_alarm_t alarm_by(const gptimer_alarm_config_t *config, counter_alarm_t before) {
    if (config == NULL) {
        return (counter_alarm_t){before.alarm_count, before.reload_count, false};
    }
    return (counter_alarm_t){config->alarm_count, config->reload_count, config->flags.auto_reload_on_alarm};
}

esp_err_t gptimer_set_alarm_action(gptimer_handle_t timer, const gptimer_alarm_config_t *config) {
    bool reloads = config != NULL && config->flags.auto_reload_on_alarm;
    if (timer == NULL || (reloads && config->alarm_count == config->reload_count)) {
        return ESP_ERR_INVALID_ARG;
    }
    portENTER_CRITICAL_SAFE(&timer->lock);
    timer->alarm_enabled = config != NULL;
    counter_set_alarm(&timer->counter, alarm_by(config, timer->counter.alarm), config != NULL,
                      vboard_uptime_ns());
    portEXIT_CRITICAL_SAFE(&timer->lock);
    alarm_may_have_moved(timer);
    return ESP_OK;
}

/* From one state to another; false where the timer is in none of the first. */
static bool change_state(gptimer_handle_t timer, state_t from, state_t to) {
    portENTER_CRITICAL_SAFE(&timer->lock);
    bool changed = timer->state == from;
    if (changed) {
        timer->state = to;
    }
    if (changed && (from == STATE_RUNNING || to == STATE_RUNNING)) {
        counter_run(&timer->counter, to == STATE_RUNNING, vboard_uptime_ns());
        counter_arm(&timer->counter, to == STATE_RUNNING && timer->alarm_enabled, vboard_uptime_ns());
    }
    portEXIT_CRITICAL_SAFE(&timer->lock);
    alarm_may_have_moved(timer);
    return changed;
}

esp_err_t gptimer_enable(gptimer_handle_t timer) {
    ESP_RETURN_ON_FALSE(timer, ESP_ERR_INVALID_ARG, TAG, "invalid argument");
    ESP_RETURN_ON_FALSE(change_state(timer, STATE_INIT, STATE_ENABLED), ESP_ERR_INVALID_STATE, TAG,
                        "timer not in init state");
    return ESP_OK;
}

esp_err_t gptimer_disable(gptimer_handle_t timer) {
    ESP_RETURN_ON_FALSE(timer, ESP_ERR_INVALID_ARG, TAG, "invalid argument");
    ESP_RETURN_ON_FALSE(change_state(timer, STATE_ENABLED, STATE_INIT), ESP_ERR_INVALID_STATE, TAG,
                        "timer not in enable state");
    return ESP_OK;
}

/* Without a word where it is so already, as in ESP-IDF. */
static esp_err_t run(gptimer_handle_t timer, state_t from, state_t to) {
    if (timer == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    bool done = __atomic_load_n(&timer->state, __ATOMIC_ACQUIRE) == to || change_state(timer, from, to);
    return done ? ESP_OK : ESP_ERR_INVALID_STATE;
}

esp_err_t gptimer_start(gptimer_handle_t timer) {
    return run(timer, STATE_ENABLED, STATE_RUNNING);
}

esp_err_t gptimer_stop(gptimer_handle_t timer) {
    return run(timer, STATE_RUNNING, STATE_ENABLED);
}
