/* SPDX-License-Identifier: Apache-2.0 */
/* A board's clocks go by its crystal, which may be off: all by as much, and none is early. */
#include <sys/time.h>
#include <time.h>

#include "driver/gptimer.h"
#include "esp_cpu.h"
#include "esp_timer.h"
#include "idf_check.h"

#define PPM INT64_C(1000000)
#define DELAY_TICKS 50
#define READINGS 500000

/* CLOCK_MONOTONIC since reset, in what the crystal makes of it. */
static int64_t scaled_host_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    const int64_t host_us = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000 - vboard()->boot_us;
    return host_us * (PPM + vboard()->crystal_ppm) / PPM;
}

static void test_pace(void) {
    const int64_t before_us = scaled_host_us();
    const int64_t uptime_us = esp_timer_get_time();
    const int64_t after_us = scaled_host_us();
    CHECK(before_us - 1 <= uptime_us && uptime_us <= after_us + 1);
}

/* The cycle counter and a gptimer count as many microseconds as esp_timer does. */
static void test_alike(void) {
    const int64_t outer_us = esp_timer_get_time();
    const esp_cpu_cycle_count_t begin = esp_cpu_get_cycle_count();
    const int64_t inner_us = esp_timer_get_time();
    vTaskDelay(DELAY_TICKS);
    const int64_t least_us = esp_timer_get_time() - inner_us;
    const esp_cpu_cycle_count_t cycles = esp_cpu_get_cycle_count() - begin;
    const int64_t most_us = esp_timer_get_time() - outer_us;
    CHECK(cycles / CONFIG_ESP_DEFAULT_CPU_FREQ_MHZ + 1 >= least_us);
    CHECK(cycles / CONFIG_ESP_DEFAULT_CPU_FREQ_MHZ <= most_us);
}

/* And the date goes on by as many. */
static void test_date(void) {
    struct timeval begin, end;
    const struct timeval set = {.tv_sec = 1000000000};
    const int64_t outer_us = esp_timer_get_time();
    CHECK_EQUAL(settimeofday(&set, NULL), 0);
    CHECK_EQUAL(gettimeofday(&begin, NULL), 0);
    const int64_t inner_us = esp_timer_get_time();
    vTaskDelay(DELAY_TICKS);
    const int64_t least_us = esp_timer_get_time() - inner_us;
    CHECK_EQUAL(gettimeofday(&end, NULL), 0);
    const int64_t most_us = esp_timer_get_time() - outer_us;
    const int64_t us = (int64_t)(end.tv_sec - begin.tv_sec) * 1000000 + end.tv_usec - begin.tv_usec;
    CHECK(begin.tv_sec == set.tv_sec);
    CHECK(us + 2 >= least_us && us <= most_us + 2);
}

/* It never goes back, wherever the program had to wait between two readings. */
static void test_date_goes_on(void) {
    struct timeval before, now;
    CHECK_EQUAL(gettimeofday(&before, NULL), 0);
    for (int i = 0; i < READINGS; ++i) {
        CHECK_EQUAL(gettimeofday(&now, NULL), 0);
        CHECK(!timercmp(&now, &before, <));
        before = now;
    }
}

static void test_gptimer(void) {
    gptimer_handle_t timer = NULL;
    const gptimer_config_t config = {
        .clk_src = GPTIMER_CLK_SRC_DEFAULT, .direction = GPTIMER_COUNT_UP, .resolution_hz = 1000000};
    uint64_t count = 0;
    CHECK_EQUAL(gptimer_new_timer(&config, &timer), ESP_OK);
    CHECK_EQUAL(gptimer_enable(timer), ESP_OK);
    const int64_t outer_us = esp_timer_get_time();
    CHECK_EQUAL(gptimer_start(timer), ESP_OK);
    const int64_t inner_us = esp_timer_get_time();
    vTaskDelay(DELAY_TICKS);
    const int64_t least_us = esp_timer_get_time() - inner_us;
    CHECK_EQUAL(gptimer_get_raw_count(timer, &count), ESP_OK);
    const int64_t most_us = esp_timer_get_time() - outer_us;
    CHECK((int64_t)count + 1 >= least_us && (int64_t)count <= most_us);
    CHECK_EQUAL(gptimer_stop(timer), ESP_OK);
    CHECK_EQUAL(gptimer_disable(timer), ESP_OK);
    CHECK_EQUAL(gptimer_del_timer(timer), ESP_OK);
}

/* The moment at which the host's clock comes to an uptime is the first one that is not early. */
static void test_host_moment(void) {
    static const int64_t uptimes_us[] = {0, 1, 999999, 1000000, 1000001, INT64_C(86400) * PPM * 1000};
    const int64_t pace = PPM + vboard()->crystal_ppm;
    for (size_t i = 0; i < sizeof uptimes_us / sizeof uptimes_us[0]; i++) {
        const int64_t host_us = vboard_monotonic_us(uptimes_us[i]) - vboard()->boot_us;
        CHECK(host_us / PPM * pace + host_us % PPM * pace / PPM >= uptimes_us[i]);
        CHECK((host_us - 1) / PPM * pace + (host_us - 1) % PPM * pace / PPM < uptimes_us[i] || host_us == 0);
    }
}

void app_main(void) {
    vTaskPrioritySet(NULL, 10);
    test_pace();
    test_alike();
    test_date();
    test_date_goes_on();
    test_gptimer();
    test_host_moment();
    exit(0);
}
