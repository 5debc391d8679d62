/* SPDX-License-Identifier: Apache-2.0 */
/* The general purpose timer: its counter by a clock that the test sets, its driver's states, and its
 * interrupts. */
#include "driver/gptimer.h"

#include "counter.h"
#include "esp_timer.h"
#include "idf_check.h"

#define MS 1000000LL /* ns */
#define PERIOD_US 2000
#define ALARMS 5

static counter_t running_counter(uint32_t resolution_hz, bool up) {
    counter_t counter = {.resolution_hz = resolution_hz, .up = up};
    counter_write(&counter, 0, 0);
    counter_run(&counter, true, 0);
    return counter;
}

/* A count is the time since it was set, in whole ticks; parts of a tick are not lost when something else is
 * set. */
static void test_count(void) {
    counter_t counter = running_counter(3000000, true);
    CHECK_EQUAL(counter_read(&counter, 333), 0);
    CHECK_EQUAL(counter_read(&counter, 334), 1);
    for (int64_t ns = 0; ns < 10000; ns += 100) {
        counter_arm(&counter, false, ns);
    }
    CHECK_EQUAL(counter_read(&counter, 1000 * MS), 3000000);
    counter_run(&counter, false, 2000 * MS);
    CHECK_EQUAL(counter_read(&counter, 9000 * MS), 6000000);
    counter_write(&counter, 10, 9000 * MS);
    counter_run(&counter, true, 9000 * MS);
    CHECK_EQUAL(counter_read(&counter, 9001 * MS), 3010);
    counter_t down = running_counter(1000000, false);
    counter_write(&down, 5000, 0);
    CHECK_EQUAL(counter_read(&down, 2 * MS), 3000);
}

/* Alarms of a timer that reloads are start + n periods, also where the interrupt comes periods late. */
static void test_grid(void) {
    counter_t counter = running_counter(10000000, true);
    counter_set_alarm(&counter, (counter_alarm_t){10000, 0, true}, true, 0);
    CHECK_EQUAL(counter_next_ns(&counter), MS);
    CHECK(!counter_take_alarm(&counter, MS - 1));
    CHECK(counter_take_alarm(&counter, MS));
    CHECK_EQUAL(counter_read(&counter, MS + 500), 5);
    const int64_t late_ns = 4 * MS + MS / 2;
    for (int64_t n = 2; n <= 4; n++) {
        CHECK_EQUAL(counter_next_ns(&counter), n * MS);
        CHECK(counter_take_alarm(&counter, late_ns));
    }
    CHECK(!counter_take_alarm(&counter, late_ns));
    CHECK_EQUAL(counter_next_ns(&counter), 5 * MS);
    CHECK_EQUAL(counter_read(&counter, late_ns), 5000);
}

/* An alarm that does not reload is one; one that was passed when it was set is due at once. */
static void test_one_shot(void) {
    counter_t counter = running_counter(1000000, true);
    counter_set_alarm(&counter, (counter_alarm_t){.alarm_count = 1000}, true, 0);
    CHECK(counter_take_alarm(&counter, 2 * MS));
    CHECK_EQUAL(counter_next_ns(&counter), COUNTER_NEVER_NS);
    CHECK_EQUAL(counter_read(&counter, 3 * MS), 3000);
    counter_set_alarm(&counter, (counter_alarm_t){.alarm_count = 2500}, true, 3 * MS);
    CHECK_EQUAL(counter_next_ns(&counter), 3 * MS);
    CHECK(counter_take_alarm(&counter, 3 * MS));
    counter_set_alarm(&counter, (counter_alarm_t){.alarm_count = 3500}, false, 3 * MS);
    CHECK(!counter_take_alarm(&counter, 9 * MS));
    counter_t far = running_counter(1000000, true);
    counter_set_alarm(&far, (counter_alarm_t){.alarm_count = UINT64_MAX}, true, 0);
    CHECK_EQUAL(counter_next_ns(&far), COUNTER_NEVER_NS);
}

static void test_down(void) {
    counter_t counter = running_counter(1000000, false);
    counter_write(&counter, 1000, 0);
    counter_set_alarm(&counter, (counter_alarm_t){0, 1000, true}, true, 0);
    CHECK_EQUAL(counter_next_ns(&counter), MS);
    CHECK(counter_take_alarm(&counter, MS));
    CHECK_EQUAL(counter_read(&counter, MS + MS / 4), 750);
    CHECK_EQUAL(counter_next_ns(&counter), 2 * MS);
}

/* A counter that stands still has no alarm. */
static void test_stopped(void) {
    counter_t counter = running_counter(1000000, true);
    counter_set_alarm(&counter, (counter_alarm_t){.alarm_count = 1000}, true, 0);
    counter_run(&counter, false, MS / 2);
    CHECK_EQUAL(counter_next_ns(&counter), COUNTER_NEVER_NS);
    counter_run(&counter, true, 10 * MS);
    CHECK_EQUAL(counter_next_ns(&counter), 10 * MS + MS / 2);
}

static gptimer_handle_t new_timer(uint32_t resolution_hz) {
    const gptimer_config_t config = {
        .clk_src = GPTIMER_CLK_SRC_DEFAULT, .direction = GPTIMER_COUNT_UP, .resolution_hz = resolution_hz};
    gptimer_handle_t timer = NULL;
    CHECK_EQUAL(gptimer_new_timer(&config, &timer), ESP_OK);
    return timer;
}

/* What ESP-IDF refuses is refused here, by the same error. */
static void test_arguments(void) {
    gptimer_handle_t timer = NULL;
    gptimer_config_t config = {.clk_src = GPTIMER_CLK_SRC_DEFAULT, .direction = GPTIMER_COUNT_UP};
    CHECK_EQUAL(gptimer_new_timer(&config, &timer), ESP_ERR_INVALID_ARG);
    config.resolution_hz = 1000000;
    config.intr_priority = 4;
    CHECK_EQUAL(gptimer_new_timer(&config, &timer), ESP_ERR_INVALID_ARG);
    config.intr_priority = 0;
    config.flags.allow_pd = 1;
    CHECK_EQUAL(gptimer_new_timer(&config, &timer), ESP_ERR_NOT_SUPPORTED);
    config.flags.allow_pd = 0;
    CHECK_EQUAL(gptimer_new_timer(&config, NULL), ESP_ERR_INVALID_ARG);
    CHECK_EQUAL(gptimer_new_timer(NULL, &timer), ESP_ERR_INVALID_ARG);

    gptimer_handle_t timers[8];
    int count = 0;
    while (gptimer_new_timer(&config, &timers[count]) == ESP_OK) {
        count++;
        CHECK(count < 8);
    }
    CHECK_EQUAL(gptimer_new_timer(&config, &timer), ESP_ERR_NOT_FOUND);
    CHECK_EQUAL(count, CONFIG_SOC_CPU_CORES_NUM > 1 ? 4 : 2);
    while (count > 0) {
        CHECK_EQUAL(gptimer_del_timer(timers[--count]), ESP_OK);
    }
}

/* Init, enabled, running; starting and stopping twice is no error. */
static void test_states(void) {
    gptimer_handle_t timer = new_timer(3000000);
    const gptimer_event_callbacks_t none = {.on_alarm = NULL};
    const gptimer_alarm_config_t still = {
        .alarm_count = 7, .reload_count = 7, .flags.auto_reload_on_alarm = 1};
    uint32_t resolution_hz = 0;
    uint64_t count = 1;
    CHECK_EQUAL(gptimer_get_resolution(timer, &resolution_hz), ESP_OK);
    CHECK_EQUAL(resolution_hz, 80000000 / 26);
    CHECK_EQUAL(gptimer_start(timer), ESP_ERR_INVALID_STATE);
    CHECK_EQUAL(gptimer_stop(timer), ESP_ERR_INVALID_STATE);
    CHECK_EQUAL(gptimer_disable(timer), ESP_ERR_INVALID_STATE);
    CHECK_EQUAL(gptimer_set_alarm_action(timer, &still), ESP_ERR_INVALID_ARG);
    CHECK_EQUAL(gptimer_enable(timer), ESP_OK);
    CHECK_EQUAL(gptimer_enable(timer), ESP_ERR_INVALID_STATE);
    CHECK_EQUAL(gptimer_register_event_callbacks(timer, &none, NULL), ESP_ERR_INVALID_STATE);
    CHECK_EQUAL(gptimer_stop(timer), ESP_OK);
    CHECK_EQUAL(gptimer_start(timer), ESP_OK);
    CHECK_EQUAL(gptimer_start(timer), ESP_OK);
    CHECK_EQUAL(gptimer_del_timer(timer), ESP_ERR_INVALID_STATE);
    CHECK_EQUAL(gptimer_stop(timer), ESP_OK);
    CHECK_EQUAL(gptimer_set_raw_count(timer, 42), ESP_OK);
    CHECK_EQUAL(gptimer_get_raw_count(timer, &count), ESP_OK);
    CHECK_EQUAL(count, 42);
    CHECK_EQUAL(gptimer_disable(timer), ESP_OK);
    CHECK_EQUAL(gptimer_del_timer(timer), ESP_OK);
    CHECK_EQUAL(gptimer_del_timer(NULL), ESP_ERR_INVALID_ARG);
}

typedef struct {
    SemaphoreHandle_t alarms;
    TaskHandle_t starter;
    BaseType_t core;
    int64_t start_us;
    int count;
} periodic_t;

static bool on_alarm(gptimer_handle_t timer, const gptimer_alarm_event_data_t *event, void *context) {
    (void)timer;
    periodic_t *periodic = context;
    BaseType_t woken = pdFALSE;
    CHECK(xPortInIsrContext());
    CHECK(xPortInterruptedFromISRContext());
    CHECK_EQUAL(xPortGetCoreID(), periodic->core);
    CHECK_EQUAL(event->alarm_value, PERIOD_US);
    periodic->count++;
    CHECK(esp_timer_get_time() >= periodic->start_us + (int64_t)periodic->count * PERIOD_US);
    xSemaphoreGiveFromISR(periodic->alarms, &woken);
    return woken;
}

static gptimer_handle_t start_periodic(periodic_t *periodic) {
    const gptimer_event_callbacks_t callbacks = {.on_alarm = on_alarm};
    const gptimer_alarm_config_t alarm = {.alarm_count = PERIOD_US, .flags.auto_reload_on_alarm = 1};
    gptimer_handle_t timer = new_timer(1000000);
    CHECK_EQUAL(gptimer_register_event_callbacks(timer, &callbacks, periodic), ESP_OK);
    CHECK_EQUAL(gptimer_set_alarm_action(timer, &alarm), ESP_OK);
    CHECK_EQUAL(gptimer_enable(timer), ESP_OK);
    periodic->start_us = esp_timer_get_time();
    CHECK_EQUAL(gptimer_start(timer), ESP_OK);
    return timer;
}

static void stop(gptimer_handle_t timer) {
    CHECK_EQUAL(gptimer_stop(timer), ESP_OK);
    CHECK_EQUAL(gptimer_disable(timer), ESP_OK);
    CHECK_EQUAL(gptimer_del_timer(timer), ESP_OK);
}

static void run_periodic(void *argument) {
    periodic_t *periodic = argument;
    CHECK(!xPortInIsrContext());
    gptimer_handle_t timer = start_periodic(periodic);
    for (int i = 0; i < ALARMS; i++) {
        CHECK(xSemaphoreTake(periodic->alarms, portMAX_DELAY));
    }
    stop(timer);
    xTaskNotifyGive(periodic->starter);
    vTaskDelete(NULL);
}

/* Alarms interrupt the core that registered the callback, none before its moment, and wake tasks. */
static void test_alarms(BaseType_t core) {
    periodic_t periodic = {
        .alarms = xSemaphoreCreateCounting(100, 0), .starter = xTaskGetCurrentTaskHandle(), .core = core};
    spawn(run_periodic, &periodic, 20, core);
    ulTaskNotifyTake(pdTRUE, portMAX_DELAY);
    CHECK(periodic.count >= ALARMS);
    vSemaphoreDelete(periodic.alarms);
}

/* An alarm interrupts also a task that suspended the scheduler and computes. */
static void test_alarm_beside_suspended_scheduler(void) {
    periodic_t periodic = {.alarms = xSemaphoreCreateCounting(100, 0)};
    gptimer_handle_t timer = start_periodic(&periodic);
    vTaskSuspendAll();
    while (__atomic_load_n(&periodic.count, __ATOMIC_ACQUIRE) == 0) {
    }
    xTaskResumeAll();
    stop(timer);
    vSemaphoreDelete(periodic.alarms);
}

typedef struct {
    TaskHandle_t waiter;
    uint64_t counts[ALARMS];
    int count;
} chain_t;

static bool set_next(gptimer_handle_t timer, const gptimer_alarm_event_data_t *event, void *context) {
    chain_t *chain = context;
    BaseType_t woken = pdFALSE;
    chain->counts[chain->count++] = event->count_value;
    if (chain->count < ALARMS) {
        const gptimer_alarm_config_t next = {.alarm_count = event->alarm_value + 500};
        CHECK_EQUAL(gptimer_set_alarm_action(timer, &next), ESP_OK);
    } else {
        CHECK_EQUAL(gptimer_stop(timer), ESP_OK);
        vTaskNotifyGiveFromISR(chain->waiter, &woken);
        CHECK(woken);
    }
    return woken;
}

/* An interrupt may set the next alarm and stop its timer; the count goes on where no alarm reloads it. */
static void test_alarm_by_alarm(void) {
    chain_t chain = {.waiter = xTaskGetCurrentTaskHandle()};
    const gptimer_event_callbacks_t callbacks = {.on_alarm = set_next};
    const gptimer_alarm_config_t first = {.alarm_count = 20000};
    gptimer_handle_t timer = new_timer(1000000);
    CHECK_EQUAL(gptimer_register_event_callbacks(timer, &callbacks, &chain), ESP_OK);
    CHECK_EQUAL(gptimer_enable(timer), ESP_OK);
    vTaskPrioritySet(NULL, 24);
    CHECK_EQUAL(gptimer_start(timer), ESP_OK);
    CHECK_EQUAL(gptimer_set_alarm_action(timer, &first), ESP_OK);
    ulTaskNotifyTake(pdTRUE, portMAX_DELAY);
    vTaskPrioritySet(NULL, 10);
    CHECK_EQUAL(chain.count, ALARMS);
    for (int i = 0; i < ALARMS; i++) {
        CHECK(chain.counts[i] >= 20000U + (unsigned)i * 500);
    }
    CHECK_EQUAL(gptimer_disable(timer), ESP_OK);
    CHECK_EQUAL(gptimer_del_timer(timer), ESP_OK);
}

void app_main(void) {
    vTaskPrioritySet(NULL, 10);
    test_count();
    test_grid();
    test_one_shot();
    test_down();
    test_stopped();
    test_arguments();
    test_states();
    test_alarms(0);
    test_alarms(portNUM_PROCESSORS - 1);
    if (realtime()) {
        test_alarm_beside_suspended_scheduler();
    }
    test_alarm_by_alarm();
    exit(0);
}
