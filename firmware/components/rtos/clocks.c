/* SPDX-License-Identifier: Apache-2.0 */
#include "rtos/clocks.h"

#include <stdatomic.h>

#include "freertos/idf_additions.h"
#include "freertos/semphr.h"
#include "freertos/task.h"
#include "median.h"
#include "sdkconfig.h"

enum {
    ROUNDS = 200,
    READS = 101, /* odd: the median is one of them */
    SPINS_BETWEEN_LOOKS = 256,
    DEADLINE_US = 200000,
    TASK_PRIORITY = configMAX_PRIORITIES - 1,
    TASK_STACK_BYTES = 3072,
};

/* Core 0 asks, core 1 answers with its counter: the answer was read between the asker's two readings. */
typedef struct {
    atomic_uint asked;
    atomic_uint answered;
    atomic_bool failed;
    atomic_uint answer_cycles;
    int64_t deadline_us;
    TaskHandle_t answering;
    SemaphoreHandle_t ended;
    rtos_clocks_t clocks;
} handshake_t;

static uint32_t least_read_cycles(void) {
    uint32_t least = UINT32_MAX;
    for (int i = 0; i < READS; i++) {
        uint32_t first = esp_cpu_get_cycle_count();
        uint32_t apart = esp_cpu_get_cycle_count() - first;
        least = apart < least ? apart : least;
    }
    return least;
}

static uint32_t median_stamp_us(void) {
    uint32_t apart_us[READS];
    for (int i = 0; i < READS; i++) {
        rtos_stamp_t begin = rtos_stamp_begin();
        apart_us[i] = rtos_common_us(begin, rtos_stamp_end());
    }
    return rtos_median(apart_us, READS);
}

/* Spin until the other core has come to this round; it gives way now and then, for where both cores are one
 * CPU of a host. False at the deadline, for both. */
static bool await_round(handshake_t *handshake, atomic_uint *at, unsigned round) {
    for (unsigned spins = 1; atomic_load(at) != round; spins++) {
        if (spins % SPINS_BETWEEN_LOOKS != 0) {
            continue;
        }
        if (atomic_load(&handshake->failed) || esp_timer_get_time() >= handshake->deadline_us) {
            atomic_store(&handshake->failed, true);
            return false;
        }
        taskYIELD();
    }
    return true;
}

static void answer(void *argument) {
    handshake_t *handshake = argument;
    ulTaskNotifyTake(pdTRUE, portMAX_DELAY); /* not to spin before there is somebody to ask */
    for (unsigned round = 1; round <= ROUNDS && await_round(handshake, &handshake->asked, round); round++) {
        atomic_store(&handshake->answer_cycles, esp_cpu_get_cycle_count());
        atomic_store(&handshake->answered, round);
    }
    xSemaphoreGive(handshake->ended);
    vTaskDelete(NULL);
}

/* Halfway between asking and hearing is when the answer was read, to within half of that time: the quickest
 * round tells the most. */
static void take_round(rtos_clocks_t *clocks, uint32_t asked, uint32_t heard, uint32_t answered) {
    uint32_t half = (heard - asked + 1) / 2;
    if (half < clocks->offset_error_cycles) {
        clocks->offset_error_cycles = half;
        clocks->core1_offset_cycles = (int32_t)(answered - (asked + half));
    }
}

static void ask(void *argument) {
    handshake_t *handshake = argument;
    rtos_clocks_t *clocks = &handshake->clocks;
    handshake->deadline_us = esp_timer_get_time() + DEADLINE_US;
    xTaskNotifyGive(handshake->answering);
    for (unsigned round = 1; round <= ROUNDS; round++) {
        uint32_t asked = esp_cpu_get_cycle_count();
        atomic_store(&handshake->asked, round);
        if (!await_round(handshake, &handshake->answered, round)) {
            break;
        }
        uint32_t heard = esp_cpu_get_cycle_count();
        take_round(clocks, asked, heard, atomic_load(&handshake->answer_cycles));
    }
    xSemaphoreGive(handshake->ended);
    vTaskDelete(NULL);
}

/* On its own core, so that nothing moves while it reads. */
static void read_alone(void *argument) {
    handshake_t *handshake = argument;
    handshake->clocks.read_cycles = least_read_cycles();
    handshake->clocks.stamp_us = median_stamp_us();
    xSemaphoreGive(handshake->ended);
    vTaskDelete(NULL);
}

static bool start(TaskFunction_t work, handshake_t *handshake, BaseType_t core, TaskHandle_t *task) {
    return xTaskCreatePinnedToCore(work, "clocks", TASK_STACK_BYTES, handshake, TASK_PRIORITY, task, core) ==
           pdPASS;
}

static void await_end(const handshake_t *handshake) {
    xSemaphoreTake(handshake->ended, portMAX_DELAY);
}

#if portNUM_PROCESSORS > 1

static esp_err_t compare_cores(handshake_t *handshake) {
    handshake->clocks.offset_error_cycles = UINT32_MAX;
    if (!start(answer, handshake, 1, &handshake->answering)) {
        return ESP_ERR_NO_MEM;
    }
    bool asked = start(ask, handshake, 0, NULL);
    if (!asked) {
        atomic_store(&handshake->failed, true);
        xTaskNotifyGive(handshake->answering);
    }
    for (int i = 0; i < (asked ? 2 : 1); i++) {
        await_end(handshake);
    }
    if (!asked) {
        return ESP_ERR_NO_MEM;
    }
    return atomic_load(&handshake->failed) ? ESP_ERR_TIMEOUT : ESP_OK;
}

#else

static esp_err_t compare_cores(handshake_t *handshake) {
    (void)handshake;
    (void)answer;
    (void)ask;
    return ESP_OK;
}

#endif

static esp_err_t measure(handshake_t *handshake) {
    if (!start(read_alone, handshake, 0, NULL)) {
        return ESP_ERR_NO_MEM;
    }
    await_end(handshake);
    return compare_cores(handshake);
}

esp_err_t rtos_clocks_calibrate(rtos_clocks_t *clocks, bench_samples_t *samples) {
#if CONFIG_PM_ENABLE
    return bench_fail(
        samples, BENCH_OWNER_CONFIGURATION, ESP_ERR_NOT_SUPPORTED,
        "this image scales its clock (CONFIG_PM_ENABLE), so that a cycle is no time: leave the case out "
        "or build it without");
#endif
    handshake_t handshake = {.ended = xSemaphoreCreateCounting(2, 0)};
    if (handshake.ended == NULL) {
        return bench_fail(samples, BENCH_OWNER_FIRMWARE, ESP_ERR_NO_MEM, "no memory to compare the clocks");
    }
    esp_err_t err = measure(&handshake);
    vSemaphoreDelete(handshake.ended);
    if (err != ESP_OK) {
        return bench_fail(samples, BENCH_OWNER_FIRMWARE, err,
                          err == ESP_ERR_NO_MEM ? "no memory to compare the clocks"
                                                : "the cores did not meet to compare their clocks");
    }
    *clocks = handshake.clocks;
    clocks->cpu_mhz = RTOS_CPU_MHZ;
    bench_environment_int(samples, "clock_read_cycles", clocks->read_cycles);
    bench_environment_int(samples, "clock_stamp_us", clocks->stamp_us);
    bench_environment_int(samples, "core1_offset_cycles", clocks->core1_offset_cycles);
    bench_environment_int(samples, "core1_offset_error_cycles", clocks->offset_error_cycles);
    return ESP_OK;
}

static uint32_t offset_of(const rtos_clocks_t *clocks, uint8_t core) {
    return core == 1 ? (uint32_t)clocks->core1_offset_cycles : 0;
}

uint32_t rtos_corrected_ns(const rtos_clocks_t *clocks, rtos_stamp_t begin, rtos_stamp_t end) {
    uint32_t cycles = rtos_raw_cycles(begin, end) - offset_of(clocks, end.core) +
                      offset_of(clocks, begin.core) - clocks->read_cycles;
    int64_t signed_cycles = (int32_t)cycles;
    int64_t ns = signed_cycles * 1000 / (int64_t)clocks->cpu_mhz;
    return ns <= 0 ? 0 : (ns < (int64_t)UINT32_MAX ? (uint32_t)ns : UINT32_MAX);
}
