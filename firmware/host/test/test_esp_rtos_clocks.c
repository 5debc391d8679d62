/* SPDX-License-Identifier: Apache-2.0 */
/* components/rtos: the offset of the cores' counters is what it is said to be, to within the error that is
 * told, and a corrected difference between cores is a time.
 */
#include "idf_check.h"
#include "rtos/clocks.h"
#include "samples_private.h"

enum { APART_US = 1000, ATTEMPTS = 20 };

static bench_samples_t s_samples;
static rtos_stamp_t s_stamp;

static void take_end(void *ended) {
    s_stamp = rtos_stamp_end();
    xSemaphoreGive(ended);
    vTaskDelete(NULL);
}

static void take_begin(void *ended) {
    s_stamp = rtos_stamp_begin();
    xSemaphoreGive(ended);
    vTaskDelete(NULL);
}

static rtos_stamp_t stamp(TaskFunction_t code, BaseType_t core) {
    SemaphoreHandle_t ended = xSemaphoreCreateBinary();
    spawn(code, ended, 10, core);
    CHECK_EQUAL(xSemaphoreTake(ended, pdMS_TO_TICKS(10000)), pdTRUE);
    vSemaphoreDelete(ended);
    return s_stamp;
}

static uint32_t apart(uint32_t a, uint32_t b) {
    int32_t difference = (int32_t)(a - b);
    return (uint32_t)(difference < 0 ? -difference : difference);
}

static bool has_offset(const rtos_clocks_t *clocks) {
    return apart((uint32_t)clocks->core1_offset_cycles, 0) / clocks->cpu_mhz > 2 * APART_US;
}

/* Between two cores the raw difference holds the offset, the corrected one agrees with esp_timer. */
static bool agrees(const rtos_clocks_t *clocks, rtos_stamp_t begin, rtos_stamp_t end) {
    uint32_t common_us = rtos_common_us(begin, end);
    uint32_t error_us = clocks->offset_error_cycles / clocks->cpu_mhz + clocks->stamp_us + APART_US;
    uint32_t raw_us = rtos_raw_cycles(begin, end) / clocks->cpu_mhz;
    bool holds_offset = apart(raw_us, common_us) > error_us;
    return apart(rtos_corrected_ns(clocks, begin, end) / 1000, common_us) <= error_us &&
           holds_offset == (begin.core != end.core && has_offset(clocks));
}

/* A stamp's two clocks are read one after the other: a stall of the machine between them is no error of the
 * offset, and does not come each time. */
static bool agrees_between(const rtos_clocks_t *clocks, BaseType_t from, BaseType_t to) {
    bool agreed = false;
    for (int attempt = 0; attempt < ATTEMPTS && !agreed; attempt++) {
        rtos_stamp_t begin = stamp(take_begin, from);
        agreed = agrees(clocks, begin, stamp(take_end, to));
    }
    return agreed;
}

void app_main(void) {
    samples_reset(&s_samples, 1, NULL);
    CHECK_EQUAL(bench_samples_begin(&s_samples, 1, 0), ESP_OK);
    rtos_clocks_t clocks = {0};
    CHECK_EQUAL(rtos_clocks_calibrate(&clocks, &s_samples), ESP_OK);
    CHECK_EQUAL(clocks.cpu_mhz, CONFIG_ESP_DEFAULT_CPU_FREQ_MHZ);
    CHECK(strstr(s_samples.environment, " core1_offset_cycles=") != NULL);
    CHECK(strstr(s_samples.environment, " clock_read_cycles=") != NULL);
    for (BaseType_t from = 0; from < portNUM_PROCESSORS; from++) {
        for (BaseType_t to = 0; to < portNUM_PROCESSORS; to++) {
            CHECK(agrees_between(&clocks, from, to));
        }
    }
    rtos_stamp_t begin = rtos_stamp_begin(), before = begin;
    before.cycles -= 1000;
    CHECK_EQUAL(rtos_corrected_ns(&clocks, begin, before), 0); /* never below */
    before.cycles = begin.cycles + 5 * 1000000 * clocks.cpu_mhz;
    CHECK_EQUAL(rtos_corrected_ns(&clocks, begin, before), UINT32_MAX); /* 5 s, which does not wrap */
    exit(EXIT_SUCCESS);
}
