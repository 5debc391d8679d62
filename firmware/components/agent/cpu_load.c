/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu_load.h"

#include <stdbool.h>
#include <stdio.h>

#include "agent/samples.h"
#include "esp_timer.h"
#include "freertos/FreeRTOS.h"
#include "port/port.h"
#include "sdkconfig.h"

enum { KEY_SIZE = 40 };

typedef struct {
    int64_t clock_us;
    uint32_t idle_us[portNUM_PROCESSORS];
} counters_t;

static counters_t s_begin, s_end;
static enum { STRETCH_NONE, STRETCH_OPEN, STRETCH_ENDED } s_stretch;
static bool s_is_set_by_bench, s_is_wanted;

static counters_t read_counters(void) {
    counters_t counters = {.clock_us = esp_timer_get_time()};
    for (int core = 0; core < portNUM_PROCESSORS; core++) {
        counters.idle_us[core] = port_idle_us(core);
    }
    return counters;
}

void cpu_load_reset(void) {
    port_idle_count(false);
    s_stretch = STRETCH_NONE;
    s_is_set_by_bench = s_is_wanted = false;
}

static void begin(void) {
    s_stretch = STRETCH_NONE;
    if (port_idle_count(s_is_wanted)) {
        s_begin = read_counters();
        s_stretch = STRETCH_OPEN;
    }
}

void cpu_load_begin(void) {
    if (!s_is_set_by_bench) {
        begin();
    }
}

void bench_cpu_load_want(void) {
    s_is_wanted = true;
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
    port_idle_count(false);
}

void bench_cpu_load_end(void) {
    cpu_load_end();
}

static void write_us(wire_line_t *line, const char *name, int core, int64_t value_us) {
    char key[KEY_SIZE];
    snprintf(key, sizeof(key), name, port_memory_prefix(), core);
    wire_line_int(line, key, value_us);
}

void cpu_load_write(wire_line_t *line) {
    wire_line_int(line, "cpu_mhz", CONFIG_ESP_DEFAULT_CPU_FREQ_MHZ); /* cycles become time by it */
    if (s_stretch == STRETCH_NONE) {
        return;
    }
    counters_t end = s_stretch == STRETCH_ENDED ? s_end : read_counters();
    int64_t wall_us = end.clock_us - s_begin.clock_us;
    write_us(line, "%scpu_wall_us", 0, wall_us);
    for (int core = 0; core < portNUM_PROCESSORS; core++) {
        int64_t idle_us = (uint32_t)(end.idle_us[core] - s_begin.idle_us[core]);
        /* an idle task's last slice may have begun before the stretch */
        write_us(line, "%scpu_busy_core%d_us", core, idle_us < wall_us ? wall_us - idle_us : 0);
    }
}
