/* SPDX-License-Identifier: Apache-2.0 */
/* Idle time of a chip, without a clock read in each switch of tasks (FreeRTOS's run-time statistics have
 * one), which every measurement of the scheduler would hold: while somebody wants it the idle tasks count
 * their own rounds. A round that took no longer than twice the shortest one was idle; in a longer one
 * something else ran.
 */
#include "freertos/FreeRTOS.h"

#include "esp_cpu.h"
#include "esp_freertos_hooks.h"
#include "port/port.h"
#include "sdkconfig.h"

enum { LEARNING_ROUNDS = 16 }; /* the first of them began who knows when, the others show how long one is */

typedef struct {
    uint32_t rounds, last_cycles, shortest_cycles, idle_cycles;
    volatile uint32_t idle_us;
} idle_t;

static idle_t s_idle[portNUM_PROCESSORS];
static bool s_is_counting;

/* False: the core does not wait for an interrupt, or its rounds would not be seen. */
static bool count_round(void) {
    idle_t *idle = &s_idle[esp_cpu_get_core_id()];
    uint32_t now = esp_cpu_get_cycle_count();
    uint32_t round = now - idle->last_cycles;
    idle->last_cycles = now;
    if (idle->rounds == 0 || round < idle->shortest_cycles) {
        idle->shortest_cycles = idle->rounds == 0 ? UINT32_MAX : round;
    }
    if (idle->rounds < LEARNING_ROUNDS) {
        idle->rounds++;
    } else if (round / 2 <= idle->shortest_cycles) {
        idle->idle_cycles += round;
    }
    while (idle->idle_cycles >= CONFIG_ESP_DEFAULT_CPU_FREQ_MHZ) {
        idle->idle_cycles -= CONFIG_ESP_DEFAULT_CPU_FREQ_MHZ;
        idle->idle_us++;
    }
    return false;
}

static void begin(void) {
    for (UBaseType_t core = 0; core < portNUM_PROCESSORS; core++) {
        s_idle[core].rounds = 0;
        s_is_counting = esp_register_freertos_idle_hook_for_cpu(count_round, core) == ESP_OK && s_is_counting;
    }
}

static void end(void) {
    for (UBaseType_t core = 0; core < portNUM_PROCESSORS; core++) {
        esp_deregister_freertos_idle_hook_for_cpu(count_round, core);
    }
}

bool port_idle_count(bool wanted) {
    if (wanted == s_is_counting) {
        return wanted;
    }
    s_is_counting = wanted;
    if (wanted) {
        begin();
    }
    if (!s_is_counting) {
        end();
    }
    return s_is_counting;
}

uint32_t port_idle_us(int core) {
    return s_idle[core].idle_us;
}
