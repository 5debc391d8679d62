/* SPDX-License-Identifier: Apache-2.0 */
/* Sleep, as far as a host has it: woken by the timer only. */
#pragma once
#include <stdint.h>

#include "esp_err.h"
#include "soc/soc_caps.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    ESP_PD_OPTION_OFF,
    ESP_PD_OPTION_ON,
    ESP_PD_OPTION_AUTO,
} esp_sleep_pd_option_t;

typedef enum {
    ESP_SLEEP_WAKEUP_UNDEFINED,
    ESP_SLEEP_WAKEUP_ALL,
    ESP_SLEEP_WAKEUP_EXT0,
    ESP_SLEEP_WAKEUP_EXT1,
    ESP_SLEEP_WAKEUP_TIMER,
    ESP_SLEEP_WAKEUP_TOUCHPAD,
    ESP_SLEEP_WAKEUP_ULP,
    ESP_SLEEP_WAKEUP_GPIO,
    ESP_SLEEP_WAKEUP_UART,
    ESP_SLEEP_WAKEUP_UART1,
    ESP_SLEEP_WAKEUP_UART2,
    ESP_SLEEP_WAKEUP_WIFI,
    ESP_SLEEP_WAKEUP_COCPU,
    ESP_SLEEP_WAKEUP_COCPU_TRAP_TRIG,
    ESP_SLEEP_WAKEUP_BT,
    ESP_SLEEP_WAKEUP_VAD,
    ESP_SLEEP_WAKEUP_VBAT_UNDER_VOLT,
} esp_sleep_source_t;

typedef esp_sleep_source_t esp_sleep_wakeup_cause_t;

enum {
    ESP_ERR_SLEEP_REJECT = ESP_ERR_INVALID_STATE,
    ESP_ERR_SLEEP_TOO_SHORT_SLEEP_DURATION = ESP_ERR_INVALID_ARG,
};

esp_err_t esp_sleep_enable_timer_wakeup(uint64_t time_in_us);
/* ESP_ERR_INVALID_STATE where the source is not enabled. */
esp_err_t esp_sleep_disable_wakeup_source(esp_sleep_source_t source);
/* ESP_SLEEP_WAKEUP_TIMER after a light sleep; a board that boots after a deep sleep says UNDEFINED. */
esp_sleep_wakeup_cause_t esp_sleep_get_wakeup_cause(void);
uint32_t esp_sleep_get_wakeup_causes(void); /* bits */

/* Tasks stand still meanwhile (with real-time permission). ESP_ERR_SLEEP_REJECT without the timer: a chip
 * would wait for a source that the host has not. */
esp_err_t esp_light_sleep_start(void);
/* The program ends, all of it at once, and the board boots when the time is over; for ever without the timer.
 */
void esp_deep_sleep_start(void) __attribute__((noreturn));
void esp_deep_sleep(uint64_t time_in_us) __attribute__((noreturn));

#ifdef __cplusplus
}
#endif
