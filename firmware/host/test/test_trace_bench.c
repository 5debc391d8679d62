/* SPDX-License-Identifier: Apache-2.0 */
/* The built-in bench `trace`: what it sends of the ring, and that sending changes nothing in it. */
#include "samples_private.h"
#include "trace/bench.h"
#include "trace_rig.h"

enum { TIME, CORE, EVENT, TASK, ARGUMENT };

static bench_samples_t s_samples;
static char s_sent[4096]; /* the environments of all bursts sent */
static size_t s_rows;
static uint32_t s_last_us;
static unsigned s_bursts;

/* Takes a burst as the host would. */
static esp_err_t take(bench_samples_t *samples) {
    CHECK(samples->rows > 0);
    for (size_t row = 0; row < samples->rows; row++) {
        CHECK(samples_get(samples, row, TIME) >= s_last_us);
        s_last_us = samples_get(samples, row, TIME);
    }
    s_rows += samples->rows;
    strncat(s_sent, samples->environment, sizeof s_sent - strlen(s_sent) - 1);
    s_bursts++;
    return ESP_OK;
}

static esp_err_t run_trace(void) {
    s_sent[0] = '\0';
    s_rows = s_last_us = s_bursts = 0;
    samples_reset(&s_samples, trace_bench.column_count, take);
    esp_err_t err = trace_bench.run(NULL, &s_samples);
    CHECK_EQUAL(atomic_load(&s_samples.fault), ESP_OK);
    return err == ESP_OK ? take(&s_samples) : err;
}

static const char *environment(void) {
    samples_reset(&s_samples, 1, take);
    trace_environment(&s_samples);
    return s_samples.environment;
}

static void check_nothing(void) {
    CHECK(strcmp(environment(), " trace_events_count=0 trace_frozen=0") == 0);
    CHECK_EQUAL(run_trace(), ESP_ERR_NOT_FOUND);
    CHECK_EQUAL(s_samples.owner, BENCH_OWNER_CONFIGURATION);
    CHECK(strcmp(s_samples.error, "nothing was traced") == 0);
}

/* A pause of the kernel's own events, and marks around it. */
static void trace_a_pause(void) {
    trace_start();
    trace_mark(TRACE_MARK_PLANNED, 11);
    vTaskDelay(2);
    trace_mark(TRACE_MARK_WOKE, 12);
    trace_freeze(0);
    trace_mark(TRACE_MARK_WOKE, 13);
    trace_stop();
}

static void check_a_trace(void) {
    trace_a_pause();
    CHECK(strstr(environment(), " trace_frozen=1") != NULL);
    for (int i = 0; i < 2; i++) { /* it can be asked for again */
        CHECK_EQUAL(run_trace(), ESP_OK);
        CHECK_EQUAL(s_bursts, 1);
        CHECK(s_rows >= 6);
        CHECK_EQUAL(samples_get(&s_samples, 0, EVENT), TRACE_MARK + TRACE_MARK_PLANNED);
        CHECK_EQUAL(samples_get(&s_samples, 0, ARGUMENT), 11);
        CHECK_EQUAL(samples_get(&s_samples, s_rows - 1, ARGUMENT), 12);
        CHECK(strstr(s_sent, "=main:1:0") != NULL);
        CHECK(strstr(s_sent, "object_") == NULL);
    }
}

static void check_run_stops_recording(void) {
    trace_start();
    trace_mark(TRACE_MARK_WOKE, 1);
    CHECK_EQUAL(run_trace(), ESP_OK);
    CHECK_EQUAL(trace_is_on, 0);
}

static void rest(void *argument) {
    (void)argument;
    vTaskSuspend(NULL);
    vTaskDelete(NULL);
}

/* Names of which a burst's environment cannot hold all, in as many bursts as they need. */
static void check_many_names(void) {
    static char objects[NAMES_OBJECTS];
    static TaskHandle_t tasks[NAMES_TASKS - 2];
    trace_start();
    for (size_t i = 0; i < sizeof tasks / sizeof tasks[0]; i++) {
        tasks[i] = spawn_named("one of: many %**", rest, 1, 0);
        (void)names_of_task(tasks[i]);
    }
    trace_stop();
    uint32_t number = names_of_task(tasks[0]);
    trace_start(); /* their suspensions do not count */
    trace_is_on = 0;
    for (size_t i = 0; i < sizeof tasks / sizeof tasks[0]; i++) {
        number = names_of_task(tasks[i]);
        ring_record(TRACE_READY, number, 1);
    }
    for (uint32_t i = 0; i < NAMES_OBJECTS; i++) {
        ring_record(TRACE_GIVEN, number, names_of_object(&objects[i], TRACE_NOTIFICATION));
    }
    CHECK_EQUAL(run_trace(), ESP_OK);
    CHECK(s_bursts > 1);
    CHECK_EQUAL(s_rows, NAMES_TASKS - 2 + NAMES_OBJECTS);
    char last_task[64];
    snprintf(last_task, sizeof last_task, " task_%u=one%%20of_%%20many%%20%%25%%2A:1:0", (unsigned)number);
    CHECK(strstr(s_sent, last_task) != NULL);
    CHECK(strstr(s_sent, " object_1=notification") != NULL);
    CHECK(strstr(s_sent, " object_32=notification") != NULL);
}

static int64_t s_early_us;

int64_t __real_esp_timer_get_time(void);
int64_t __wrap_esp_timer_get_time(void);

int64_t __wrap_esp_timer_get_time(void) {
    return __real_esp_timer_get_time() - s_early_us;
}

/* Numbers and times part where writers meet: what is sent is in the order of the times. */
static void check_order_of_times(void) {
    trace_start();
    trace_is_on = 0;
    vTaskDelay(20);
    for (uint32_t i = 0; i < 100; i++) {
        s_early_us = i % 10 == 9 ? 1000 * (i / 10) : 0;
        ring_record(TRACE_MARK, 1, i);
    }
    s_early_us = 0;
    CHECK_EQUAL(run_trace(), ESP_OK);
    CHECK_EQUAL(s_rows, 100);
    CHECK_EQUAL(samples_get(&s_samples, 0, ARGUMENT), 99);
}

void app_main(void) {
    check_nothing();
    check_a_trace();
    check_run_stops_recording();
    check_many_names();
    check_order_of_times();
    _exit(0);
}
