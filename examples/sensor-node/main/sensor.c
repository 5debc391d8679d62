/* SPDX-License-Identifier: Apache-2.0 */
/* The probe is not fitted on development boards: a slow drift with some noise stands for it. */
#include "sensor.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/time.h>

#include "esp_random.h"
#include "esp_timer.h"
#include "sdkconfig.h"

#define START_MC 21500
#define LOWEST_MC 15000
#define HIGHEST_MC 30000
#define NOISE_MC 40
#define CLOCK_IS_SET_S 1600000000 /* before 2020 nobody has set it */

static uint32_t s_seq;
static int32_t s_drift_mc = START_MC;
static atomic_int s_last_mc = START_MC;

static int64_t now_us(void) {
    struct timeval now;
    gettimeofday(&now, NULL);
    return now.tv_sec > CLOCK_IS_SET_S ? now.tv_sec * 1000000LL + now.tv_usec : esp_timer_get_time();
}

static int32_t noise_mc(int32_t most) {
    return (int32_t)(esp_random() % (2 * most + 1)) - most;
}

#if CONFIG_NODE_LEAK > 0
static void leak(void) {
    volatile char *lost = malloc(CONFIG_NODE_LEAK);
    if (lost != NULL) {
        lost[0] = 1;
    }
}
#endif

reading_t sensor_read(void) {
#if CONFIG_NODE_LEAK > 0
    leak();
#endif
    s_drift_mc += noise_mc(5);
    s_drift_mc = s_drift_mc < LOWEST_MC ? LOWEST_MC : s_drift_mc > HIGHEST_MC ? HIGHEST_MC : s_drift_mc;
    reading_t reading = {.seq = ++s_seq, .t_us = now_us(), .temp_mc = s_drift_mc + noise_mc(NOISE_MC)};
    atomic_store(&s_last_mc, reading.temp_mc);
    return reading;
}

int32_t sensor_last_mc(void) {
    return atomic_load(&s_last_mc);
}
