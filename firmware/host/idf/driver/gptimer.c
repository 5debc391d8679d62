/* SPDX-License-Identifier: Apache-2.0 */
/* ESP-IDF's driver of the general purpose timer: timers come and go. */
#include <inttypes.h>
#include <stdlib.h>

#include "esp_check.h"
#include "gptimer_priv.h"

#define SOURCE_HZ 80000000 /* APB */
#define MIN_DIVIDER 2
#define MAX_DIVIDER 65536
#define MAX_INTERRUPT_LEVEL 3

#if CONFIG_IDF_TARGET_ESP32C3
#define TIMERS 2
#else
#define TIMERS 4
#endif

static const char *const TAG = "gptimer";

static portMUX_TYPE s_lock = portMUX_INITIALIZER_UNLOCKED;
static int s_used;

static bool take_place(void) {
    portENTER_CRITICAL(&s_lock);
    bool free_one = s_used < TIMERS;
    s_used += free_one ? 1 : 0;
    portEXIT_CRITICAL(&s_lock);
    return free_one;
}

static void leave_place(void) {
    portENTER_CRITICAL(&s_lock);
    s_used--;
    portEXIT_CRITICAL(&s_lock);
}

static esp_err_t check_config(const gptimer_config_t *config) {
    int level = config->intr_priority;
    ESP_RETURN_ON_FALSE(config->resolution_hz, ESP_ERR_INVALID_ARG, TAG, "invalid timer resolution:%" PRIu32,
                        config->resolution_hz);
    ESP_RETURN_ON_FALSE(level >= 0 && level <= MAX_INTERRUPT_LEVEL, ESP_ERR_INVALID_ARG, TAG,
                        "invalid interrupt priority:%d", level);
    ESP_RETURN_ON_FALSE(!config->flags.allow_pd && !config->flags.backup_before_sleep, ESP_ERR_NOT_SUPPORTED,
                        TAG, "not able to power down in light sleep");
    ESP_RETURN_ON_FALSE(config->clk_src == GPTIMER_CLK_SRC_APB, ESP_ERR_INVALID_ARG, TAG, "unknown clk src");
    return ESP_OK;
}

/* The clock is divided by a whole number: the resolution is the nearest one above that it gives. */
static uint32_t real_resolution_hz(uint32_t wanted_hz) {
    uint32_t divider = SOURCE_HZ / wanted_hz;
    configASSERT(divider >= MIN_DIVIDER && divider <= MAX_DIVIDER);
    if (SOURCE_HZ / divider != wanted_hz) {
        ESP_LOGW(TAG, "resolution lost, expect %" PRIu32 ", real %" PRIu32, wanted_hz, SOURCE_HZ / divider);
    }
    return SOURCE_HZ / divider;
}

esp_err_t gptimer_new_timer(const gptimer_config_t *config, gptimer_handle_t *ret_timer) {
    ESP_RETURN_ON_FALSE(config && ret_timer, ESP_ERR_INVALID_ARG, TAG, "invalid argument");
    ESP_RETURN_ON_ERROR(check_config(config), TAG, "no timer by this configuration");
    ESP_RETURN_ON_FALSE(take_place(), ESP_ERR_NOT_FOUND, TAG, "no free timer");
    gptimer_handle_t timer = calloc(1, sizeof *timer);
    if (timer == NULL) {
        leave_place();
        return ESP_ERR_NO_MEM;
    }
    timer->lock = (portMUX_TYPE)portMUX_INITIALIZER_UNLOCKED;
    timer->counter.resolution_hz = real_resolution_hz(config->resolution_hz);
    timer->counter.up = config->direction == GPTIMER_COUNT_UP;
    counter_write(&timer->counter, 0, vboard_uptime_ns());
    *ret_timer = timer;
    return ESP_OK;
}

esp_err_t gptimer_del_timer(gptimer_handle_t timer) {
    ESP_RETURN_ON_FALSE(timer, ESP_ERR_INVALID_ARG, TAG, "invalid argument");
    ESP_RETURN_ON_FALSE(__atomic_load_n(&timer->state, __ATOMIC_ACQUIRE) == STATE_INIT, ESP_ERR_INVALID_STATE,
                        TAG, "timer not in init state");
    if (timer->interrupt != NULL) {
        vboard_interrupt_delete(timer->interrupt);
    }
    free(timer);
    leave_place();
    return ESP_OK;
}

esp_err_t gptimer_get_resolution(gptimer_handle_t timer, uint32_t *out_resolution) {
    ESP_RETURN_ON_FALSE(timer && out_resolution, ESP_ERR_INVALID_ARG, TAG, "invalid argument");
    *out_resolution = timer->counter.resolution_hz;
    return ESP_OK;
}
