/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu_load.h"

#include <stdbool.h>
#include <stdio.h>

#include "agent/samples.h"
#include "freertos/FreeRTOS.h"
#include "freertos/idf_additions.h"
#include "freertos/task.h"
#include "port/port.h"
#include "sdkconfig.h"

#if configGENERATE_RUN_TIME_STATS

enum { KEY_SIZE = 40 };

typedef struct {
    configRUN_TIME_COUNTER_TYPE clock;
    configRUN_TIME_COUNTER_TYPE idle[portNUM_PROCESSORS];
} counters_t;

static counters_t s_begin, s_end;
static enum { STRETCH_NONE, STRETCH_OPEN, STRETCH_ENDED } s_stretch;
static bool s_is_set_by_bench;

static counters_t read_counters(void) {
    counters_t counters = {.clock = portGET_RUN_TIME_COUNTER_VALUE()};
    for (BaseType_t core = 0; core < portNUM_PROCESSORS; core++) {
        counters.idle[core] = ulTaskGetIdleRunTimeCounterForCore(core);
    }
    return counters;
}

void cpu_load_reset(void) {
    s_stretch = STRETCH_NONE;
    s_is_set_by_bench = false;
}

static void begin(void) {
    s_begin = read_counters();
    s_stretch = STRETCH_OPEN;
}

void cpu_load_begin(void) {
    if (!s_is_set_by_bench) {
        begin();
    }
}

void bench_cpu_load_begin(void) {
    s_is_set_by_bench = true;
    begin();
}

void cpu_load_end(void) {
    if (s_stretch == STRETCH_OPEN) {
        s_end = read_counters();
        s_stretch = STRETCH_ENDED;
    }
}

static void write_us(wire_line_t *line, const char *name, int core, configRUN_TIME_COUNTER_TYPE value_us) {
    char key[KEY_SIZE];
    snprintf(key, sizeof(key), name, port_memory_prefix(), core);
    wire_line_int(line, key, (int64_t)value_us);
}

void cpu_load_write(wire_line_t *line) {
    if (s_stretch == STRETCH_NONE) {
        return;
    }
    counters_t end = s_stretch == STRETCH_ENDED ? s_end : read_counters();
    configRUN_TIME_COUNTER_TYPE wall_us = end.clock - s_begin.clock;
    write_us(line, "%scpu_wall_us", 0, wall_us);
    for (int core = 0; core < portNUM_PROCESSORS; core++) {
        configRUN_TIME_COUNTER_TYPE idle_us = end.idle[core] - s_begin.idle[core];
        /* an idle task's last slice may have begun before the stretch */
        write_us(line, "%scpu_busy_core%d_us", core, idle_us < wall_us ? wall_us - idle_us : 0);
    }
    wire_line_int(line, "cpu_mhz", CONFIG_ESP_DEFAULT_CPU_FREQ_MHZ);
}

#else

void cpu_load_reset(void) {
}

void cpu_load_begin(void) {
}

void bench_cpu_load_begin(void) {
}

void cpu_load_end(void) {
}

void cpu_load_write(wire_line_t *line) {
    (void)line;
}

#endif

void bench_cpu_load_end(void) {
    cpu_load_end();
}
