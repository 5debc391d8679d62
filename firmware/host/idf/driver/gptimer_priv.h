/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "counter.h"
#include "driver/gptimer.h"
#include "freertos/FreeRTOS.h"
#include "vboard.h"

typedef enum { STATE_INIT, STATE_ENABLED, STATE_RUNNING } state_t;

struct gptimer_t {
    portMUX_TYPE lock;
    state_t state;
    counter_t counter;
    bool alarm_enabled; /* as last configured; the counter's own is off after an alarm */
    vboard_interrupt_t *interrupt;
    gptimer_alarm_cb_t on_alarm;
    void *user_data;
};
