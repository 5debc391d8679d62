/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "esp_log.h"
#include "esp_sleep.h"
#include "freertos/FreeRTOS.h"
#include "freertos/task.h"

#define TIMER_MAX_US ((UINT64_C(1) << 48) - 1) /* a chip counts 48 bits */

static const char *TAG = "sleep";

static atomic_bool s_timer_enabled;
static _Atomic uint64_t s_timer_us;
static atomic_int s_cause = ESP_SLEEP_WAKEUP_UNDEFINED;

esp_err_t esp_sleep_enable_timer_wakeup(uint64_t time_in_us) {
    if (time_in_us > TIMER_MAX_US) {
        return ESP_ERR_INVALID_ARG;
    }
    s_timer_us = time_in_us;
    s_timer_enabled = true;
    return ESP_OK;
}

esp_err_t esp_sleep_disable_wakeup_source(esp_sleep_source_t source) {
    if (source == ESP_SLEEP_WAKEUP_ALL || (source == ESP_SLEEP_WAKEUP_TIMER && s_timer_enabled)) {
        s_timer_enabled = false;
        return ESP_OK;
    }
    ESP_LOGE(TAG, "Incorrect wakeup source (%d) to disable.", (int)source);
    return ESP_ERR_INVALID_STATE;
}

esp_sleep_wakeup_cause_t esp_sleep_get_wakeup_cause(void) {
    return (esp_sleep_wakeup_cause_t)s_cause;
}

uint32_t esp_sleep_get_wakeup_causes(void) {
    return UINT32_C(1) << (unsigned)s_cause;
}

esp_err_t esp_light_sleep_start(void) {
    if (!s_timer_enabled) {
        ESP_LOGE(TAG, "no source that the host has would end this sleep");
        return ESP_ERR_SLEEP_REJECT;
    }
    const uint64_t us = s_timer_us;
    struct timespec left = {.tv_sec = (time_t)(us / 1000000), .tv_nsec = (long)(us % 1000000 * 1000)};
    vTaskSuspendAll();
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
    (void)xTaskResumeAll();
    s_cause = ESP_SLEEP_WAKEUP_TIMER;
    return ESP_OK;
}

/* Another program in the place of this one, so that nothing of it goes on. Its end is the board's next reset.
 */
void esp_deep_sleep_start(void) {
    char seconds[32] = "infinity";
    if (s_timer_enabled) {
        const uint64_t us = s_timer_us;
        snprintf(seconds, sizeof seconds, "%llu.%06llu", (unsigned long long)(us / 1000000),
                 (unsigned long long)(us % 1000000));
    }
    fflush(stdout);
    execlp("sleep", "sleep", seconds, (char *)NULL);
    perror("sleep");
    _exit(EXIT_FAILURE);
}

void esp_deep_sleep(uint64_t time_in_us) {
    (void)esp_sleep_enable_timer_wakeup(time_in_us);
    esp_deep_sleep_start();
}
