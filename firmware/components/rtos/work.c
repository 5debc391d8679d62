/* SPDX-License-Identifier: Apache-2.0 */
#include "rtos/work.h"

#include "esp_timer.h"
#include "median.h"

enum { STRETCHES = 21, STRETCH_US = 2000, FIRST_LOOPS = 500 };

/* Whetstone's t: a little below a half, so that the sums neither die out nor grow. */
static const float FACTOR = 0.499975F;

static volatile float s_sum; /* what is computed has to end up somewhere */
static volatile int32_t s_index;

void rtos_work(uint32_t loops) {
    float a = 1.0F, b = -1.0F, c = -1.0F, d = -1.0F;
    int32_t j = 1, k = 2, l = 3;
    for (uint32_t i = 0; i < loops; i++) {
        a = (a + b + c - d) * FACTOR;
        b = (a + b - c + d) * FACTOR;
        c = (a - b + c + d) * FACTOR;
        d = (b - a + c + d) * FACTOR;
        j = (j * (k - j) * (l - k)) & 0xff;
        k = (l * k - (l - j) * k) & 0xff;
        l = ((l - k) * (k + j) + 1) & 0xff;
    }
    s_sum = a + b + c + d;
    s_index = j + k + l;
}

static uint32_t time_us(uint32_t loops) {
    int64_t begin_us = esp_timer_get_time();
    rtos_work(loops);
    return (uint32_t)(esp_timer_get_time() - begin_us);
}

uint32_t rtos_work_calibrate(void) {
    uint32_t loops = FIRST_LOOPS;
    while (time_us(loops) < STRETCH_US) {
        loops *= 2;
    }
    uint32_t times_us[STRETCHES];
    for (int i = 0; i < STRETCHES; i++) {
        times_us[i] = time_us(loops);
    }
    return (uint32_t)((uint64_t)loops * 1000 / rtos_median(times_us, STRETCHES));
}
