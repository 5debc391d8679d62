/* SPDX-License-Identifier: Apache-2.0 */
/* Run-time statistics: a core's idle time is what its tasks left of the time, and the agent tells the rest.
 */
#include <stdlib.h>
#include <time.h>

#include "agent/samples.h"
#include "cpu_load.h"
#include "expect.h"
#include "idf_check.h"

enum { BURN_US = 200000, SPARE_US = 100000 };

_Static_assert(sizeof(configRUN_TIME_COUNTER_TYPE) == 8, "32 bits would wrap after 72 minutes");

typedef struct {
    uint64_t wall_us;
    uint64_t busy_us[portNUM_PROCESSORS];
} load_t;

static int64_t own_cpu_us(void) {
    struct timespec used;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (int64_t)used.tv_sec * 1000000 + used.tv_nsec / 1000;
}

static void burn(void *finished) {
    while (own_cpu_us() < BURN_US) {
    }
    xSemaphoreGive(finished);
    vTaskDelete(NULL);
}

static void burn_on(BaseType_t core) {
    SemaphoreHandle_t finished = xSemaphoreCreateBinary();
    UBaseType_t tasks = uxTaskGetNumberOfTasks();
    spawn(burn, finished, 4, core);
    CHECK_EQUAL(xSemaphoreTake(finished, pdMS_TO_TICKS(20000)), pdTRUE);
    CHECK_SOON(uxTaskGetNumberOfTasks() == tasks);
    vSemaphoreDelete(finished);
}

static load_t counters(void) {
    load_t now = {.wall_us = portGET_RUN_TIME_COUNTER_VALUE()};
    for (int core = 0; core < portNUM_PROCESSORS; core++) {
        now.busy_us[core] = ulTaskGetIdleRunTimeCounterForCore(core);
    }
    return now;
}

static load_t load_since(const load_t *before) {
    load_t now = counters();
    now.wall_us -= before->wall_us;
    for (int core = 0; core < portNUM_PROCESSORS; core++) {
        uint64_t idle_us = now.busy_us[core] - before->busy_us[core];
        /* the counters are read one after the other */
        CHECK(idle_us <= now.wall_us + SPARE_US);
        now.busy_us[core] = idle_us < now.wall_us ? now.wall_us - idle_us : 0;
    }
    return now;
}

/* The task's time is its core's and stays there when it is deleted. */
static void check_pinned(BaseType_t core) {
    load_t before = counters();
    burn_on(core);
    load_t load = load_since(&before);
    CHECK(load.busy_us[core] >= BURN_US * 9 / 10);
    for (int other = 0; other < portNUM_PROCESSORS; other++) {
        CHECK(other == core || load.busy_us[other] < SPARE_US);
    }
}

static void check_floating(void) {
    load_t before = counters();
    burn_on(tskNO_AFFINITY);
    load_t load = load_since(&before);
    uint32_t sum_us = 0;
    for (int core = 0; core < portNUM_PROCESSORS; core++) {
        sum_us += load.busy_us[core];
    }
    CHECK(sum_us >= BURN_US * 9 / 10);
    CHECK(sum_us < BURN_US + SPARE_US);
}

static void check_percent(void) {
    for (int core = 0; core < portNUM_PROCESSORS; core++) {
        CHECK(ulTaskGetIdleRunTimePercentForCore(core) <= 100);
    }
    CHECK(ulTaskGetIdleRunTimeCounter() > 0);
    CHECK(ulTaskGetIdleRunTimePercent() <= 100);
}

static long long told(const wire_line_t *line, const char *key) {
    const char *at = strstr(line->text, key);
    EXPECT(at != NULL);
    return atoll(at + strlen(key));
}

static wire_line_t write_load(char text[256]) {
    wire_line_t line = {.text = text, .size = 256};
    text[0] = '\0';
    cpu_load_write(&line);
    return line;
}

/* The stretch ends once: what runs after it is not in the figures, however often they are written. */
static void check_agent(void) {
    char text[256], again[256];
    wire_line_t line = write_load(text);
    EXPECT(strstr(text, "cpu_busy") == NULL); /* most benches on a chip have no load, and ask */
    CHECK_EQUAL(told(&line, " cpu_mhz="), CONFIG_ESP_DEFAULT_CPU_FREQ_MHZ);
    cpu_load_begin();
    burn_on(0);
    bench_cpu_load_end();
    line = write_load(text);
    CHECK(told(&line, " host_cpu_busy_core0_us=") >= BURN_US * 9 / 10);
    CHECK(told(&line, " host_cpu_busy_core0_us=") <= told(&line, " host_cpu_wall_us="));
    burn_on(0);
    cpu_load_end();
    write_load(again);
    EXPECT_TEXT(again, text);
    bench_cpu_load_begin();
    line = write_load(text);
    CHECK(told(&line, " host_cpu_wall_us=") < told(&(wire_line_t){.text = again}, " host_cpu_wall_us="));
    bench_cpu_load_end();
    line = write_load(text);
    cpu_load_begin(); /* as bench_samples_begin() does: the bench's own stretch stays */
    write_load(again);
    EXPECT_TEXT(again, text);
    cpu_load_reset();
    write_load(again);
    EXPECT(strstr(again, "cpu_busy") == NULL);
    cpu_load_begin();
    line = write_load(again);
    CHECK(told(&line, " host_cpu_wall_us=") >= 0);
}

static void sit(void *argument) {
    (void)xSemaphoreTake(argument, portMAX_DELAY);
    vTaskDelete(NULL);
}

/* The list of tasks has each with its state and priority, and the CPU time of one that computes; too short an
 * array stays without a count. */
static void check_system_state(void) {
    SemaphoreHandle_t semaphore = xSemaphoreCreateBinary();
    TaskHandle_t sitting = spawn(sit, semaphore, 7, 0);
    CHECK_SOON(eTaskGetState(sitting) == eBlocked);
    TaskStatus_t tasks[16];
    uint64_t total_us = 0;
    CHECK_EQUAL(uxTaskGetSystemState(tasks, 1, NULL), 0);
    UBaseType_t count = uxTaskGetSystemState(tasks, 16, &total_us);
    CHECK(count >= 2 && total_us > 0);
    bool found = false;
    bool self = false;
    for (UBaseType_t i = 0; i < count; i++) {
        found = found || (tasks[i].xHandle == sitting && tasks[i].eCurrentState == eBlocked &&
                          tasks[i].uxCurrentPriority == 7 && strcmp(tasks[i].pcTaskName, "test") == 0);
        self = self || (tasks[i].xHandle == xTaskGetCurrentTaskHandle() &&
                        tasks[i].eCurrentState == eRunning && tasks[i].ulRunTimeCounter > 0);
    }
    CHECK(found && self);
    xSemaphoreGive(semaphore);
}

void app_main(void) {
    for (BaseType_t core = 0; core < portNUM_PROCESSORS; core++) {
        check_pinned(core);
    }
    check_floating();
    check_percent();
    check_agent();
    check_system_state();
    exit(0);
}
