/* SPDX-License-Identifier: Apache-2.0 */
/* agent/port/esp/idle.c against idle tasks that the test plays, with rounds of so many cycles. */
#include <string.h>

#include "esp_cpu.h"
#include "esp_freertos_hooks.h"
#include "idf_check.h"
#include "sdkconfig.h"

/* The chip's, under other names than the host's, which is in the library. */
#define port_idle_count chip_idle_count
#define port_idle_us chip_idle_us
#include "../../components/agent/port/esp/idle.c"

enum { ROUND = 200, MHZ = CONFIG_ESP_DEFAULT_CPU_FREQ_MHZ };

static esp_freertos_idle_cb_t s_hooks[portNUM_PROCESSORS];
static int s_core;
static uint32_t s_cycles = UINT32_MAX - 1000; /* it wraps soon */
static UBaseType_t s_refusing = portNUM_PROCESSORS;

int __wrap_esp_cpu_get_core_id(void);
esp_cpu_cycle_count_t __wrap_esp_cpu_get_cycle_count(void);

int __wrap_esp_cpu_get_core_id(void) {
    return s_core;
}

esp_cpu_cycle_count_t __wrap_esp_cpu_get_cycle_count(void) {
    return s_cycles;
}

esp_err_t esp_register_freertos_idle_hook_for_cpu(esp_freertos_idle_cb_t hook, UBaseType_t core) {
    CHECK(s_hooks[core] == NULL);
    if (core == s_refusing) {
        return ESP_ERR_NO_MEM;
    }
    s_hooks[core] = hook;
    return ESP_OK;
}

void esp_deregister_freertos_idle_hook_for_cpu(esp_freertos_idle_cb_t hook, UBaseType_t core) {
    CHECK(s_hooks[core] == NULL || s_hooks[core] == hook);
    s_hooks[core] = NULL;
}

static void idle(int core, int rounds, uint32_t cycles) {
    s_core = core;
    for (int round = 0; round < rounds; round++) {
        s_cycles += cycles;
        CHECK(!s_hooks[core]()); /* it would sleep */
    }
}

/* Nobody's idle time is touched unless it is wanted. */
static void test_nothing_is_hooked_unless_wanted(void) {
    CHECK(!chip_idle_count(false));
    CHECK(s_hooks[0] == NULL);
    CHECK(chip_idle_count(true) && chip_idle_count(true));
    CHECK(s_hooks[0] != NULL);
}

/* Rounds are time, and one that something else ran in is not; a core's are its own. */
static void test_rounds_are_counted_and_gaps_are_not(void) {
    idle(0, 1, 1000000000); /* since the counter was last read, whenever that was */
    idle(0, 1, 1000000);
    idle(0, 14, ROUND);
    CHECK_EQUAL(chip_idle_us(0), 0);
    uint32_t before_us = chip_idle_us(0);
    idle(0, MHZ * 10, ROUND);
    CHECK_EQUAL(chip_idle_us(0) - before_us, ROUND * 10);
    idle(0, 1000, 10 * ROUND);
    CHECK_EQUAL(chip_idle_us(0) - before_us, ROUND * 10);
    idle(0, MHZ, ROUND + ROUND / 2); /* a cache that misses */
    CHECK_EQUAL(chip_idle_us(0) - before_us, ROUND * 10 + ROUND + ROUND / 2);
    for (int core = 1; core < portNUM_PROCESSORS; core++) {
        CHECK_EQUAL(chip_idle_us(core), 0);
    }
}

/* Where one core cannot be counted there is no load, and nothing stays behind. */
static void test_it_ends_whole(void) {
    CHECK(!chip_idle_count(false));
    s_refusing = portNUM_PROCESSORS - 1;
    CHECK(!chip_idle_count(true));
    for (int core = 0; core < portNUM_PROCESSORS; core++) {
        CHECK(s_hooks[core] == NULL);
    }
}

void app_main(void) {
    test_nothing_is_hooked_unless_wanted();
    test_rounds_are_counted_and_gaps_are_not();
    test_it_ends_whole();
    exit(0);
}
