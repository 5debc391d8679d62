/* SPDX-License-Identifier: Apache-2.0 */
/* From reset to app_main(): the counter starts at reset, and what it has counted since app_main() is told by
 * esp_timer. So it is exact to a microsecond, and only where the counter is QEMU's virtual time, which passes
 * while the core sleeps too. */
#include "agent/agent.h"
#include "esp_timer.h"
#include "private.h"

enum { STRETCH_US = 20000 };

/* Steps of the counter a microsecond, whole. */
static uint64_t steps_a_us(void) {
    int64_t began_us = esp_timer_get_time(), now_us = began_us;
    uint64_t began = rtos_instructions_read();
    while (now_us < began_us + STRETCH_US) {
        now_us = esp_timer_get_time();
    }
    uint64_t passed_us = (uint64_t)(now_us - began_us);
    return (rtos_instructions_read() - began + passed_us / 2) / passed_us;
}

static esp_err_t open_boot(cost_t *cost) {
    return cost->ticks > 1
               ? ESP_OK
               : bench_fail(cost->samples, BENCH_OWNER_CONFIGURATION, ESP_ERR_NOT_SUPPORTED,
                            "part=boot takes a counter that goes on while the core sleeps, as QEMU 8's does");
}

static bool repeat_boot(cost_t *cost) {
    uint64_t a_us = steps_a_us();
    uint64_t since_steps = (uint64_t)(esp_timer_get_time() - agent_started_us()) * a_us;
    cost->end.rounds = cost->begin.rounds; /* of which there were none before app_main() */
    cost->end.steps = rtos_instructions_read() - since_steps;
    return true;
}

const cost_part_t cost_boot = {.open = open_boot, .repeat = repeat_boot, .once_a_boot = true};
