/* SPDX-License-Identifier: Apache-2.0 */
#include "rtos/alarm.h"

esp_err_t rtos_alarm_start(rtos_alarm_t *alarm, int64_t *first_us, uint32_t *error_us) {
    alarm->timer = NULL;
    *first_us = 0;
    *error_us = 0;
    return ESP_ERR_NOT_SUPPORTED;
}

void rtos_alarm_stop(rtos_alarm_t *alarm) {
    (void)alarm;
}
