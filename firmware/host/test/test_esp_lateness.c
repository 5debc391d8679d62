/* SPDX-License-Identifier: Apache-2.0 */
/* How late the host wakes tasks: prints the figures docs/explain/host-idf.md quotes. LATENESS_SAMPLES in the
 * environment sets how many are taken (1 ms each), LATENESS_WATCH=1 has the witness on meanwhile; as a test
 * it takes few and checks that none is early. */
#include <inttypes.h>

#include "esp_timer.h"
#include "idf_check.h"

#define DEFAULT_SAMPLES 100
#define MAX_SAMPLES 60000
#define PERIOD_US 1000

static int32_t s_late_us[MAX_SAMPLES];
static int s_count;
static int s_wanted;
static int64_t s_next_us;
static TaskHandle_t s_main;

static int by_value(const void *left, const void *right) {
    int32_t a = *(const int32_t *)left;
    int32_t b = *(const int32_t *)right;
    return (a > b) - (a < b);
}

static void report(const char *what) {
    CHECK_EQUAL(s_count, s_wanted);
    qsort(s_late_us, (size_t)s_count, sizeof s_late_us[0], by_value);
    CHECK(s_late_us[0] >= 0);
    printf("%-34s n %d, us: min %" PRId32 " p50 %" PRId32 " p99 %" PRId32 " max %" PRId32 "\n", what, s_count,
           s_late_us[0], s_late_us[s_count / 2], s_late_us[s_count * 99 / 100], s_late_us[s_count - 1]);
    s_count = 0;
}

static void on_alarm(void *argument) {
    (void)argument;
    if (s_count < s_wanted) {
        s_late_us[s_count++] = (int32_t)(esp_timer_get_time() - s_next_us);
        s_next_us += PERIOD_US;
        if (s_count == s_wanted) {
            xTaskNotifyGive(s_main);
        }
    }
}

/* A callback never comes before its alarm, and the worst one on record is no less than was seen waking. */
static void measure_timer(void) {
    const esp_timer_create_args_t arguments = {.callback = on_alarm, .name = "lateness"};
    esp_timer_handle_t timer = NULL;
    CHECK_EQUAL(esp_timer_create(&arguments, &timer), ESP_OK);
    vTaskPrioritySet(NULL, 24);
    CHECK_EQUAL(esp_timer_start_periodic(timer, PERIOD_US), ESP_OK);
    s_next_us = esp_timer_get_next_alarm();
    vTaskPrioritySet(NULL, 20);
    ulTaskNotifyTake(pdTRUE, portMAX_DELAY);
    CHECK_EQUAL(esp_timer_stop(timer), ESP_OK);
    CHECK_EQUAL(esp_timer_delete(timer), ESP_OK);
    report("esp_timer callback behind alarm");
    printf("%-34s us: max %" PRId64 "\n", "esp_timer task's own record", vboard_timer_lateness_max_us());
}

/* A periodic task never wakes before its tick. */
static void measure_delay_until(void *argument) {
    (void)argument;
    TickType_t wake = xTaskGetTickCount();
    while (s_count < s_wanted) {
        if (xTaskDelayUntil(&wake, 1)) {
            s_late_us[s_count++] = (int32_t)(esp_timer_get_time() - (int64_t)wake * 1000);
        }
    }
    xTaskNotifyGive(s_main);
    vTaskDelete(NULL);
}

static void echo(void *argument) {
    (void)argument;
    for (;;) {
        ulTaskNotifyTake(pdTRUE, portMAX_DELAY);
        xTaskNotifyGive(s_main);
    }
}

static void measure_round_trip(const char *what, BaseType_t core) {
    TaskHandle_t task = spawn(echo, NULL, 21, core);
    for (; s_count < s_wanted; s_count++) {
        int64_t start_us = esp_timer_get_time();
        xTaskNotifyGive(task);
        ulTaskNotifyTake(pdTRUE, portMAX_DELAY);
        s_late_us[s_count] = (int32_t)(esp_timer_get_time() - start_us);
    }
    vTaskDelete(task);
    report(what);
}

void app_main(void) {
    const char *samples = getenv("LATENESS_SAMPLES");
    s_wanted = samples != NULL ? atoi(samples) : DEFAULT_SAMPLES;
    CHECK(s_wanted > 0 && s_wanted <= MAX_SAMPLES);
    s_main = xTaskGetCurrentTaskHandle();
    vTaskPrioritySet(NULL, 20);
    printf("scheduling: %s\n", vboard_sched_name());
    if (getenv("LATENESS_WATCH") != NULL) {
        vboard_witness_start();
    }
    measure_timer();
    spawn(measure_delay_until, NULL, 20, 1);
    ulTaskNotifyTake(pdTRUE, portMAX_DELAY);
    report("xTaskDelayUntil behind tick");
    measure_round_trip("notify round trip, same core", 0);
    measure_round_trip("notify round trip, other core", 1);
    if (getenv("LATENESS_WATCH") != NULL) {
        vboard_witness_stop();
        printf("%-34s %" PRIu32 " times, us: max %" PRIu32 "\n", "the host was late", vboard_witness_count(),
               vboard_witness_late_us(tskNO_AFFINITY, 0, INT64_MAX));
    }
    exit(0);
}
