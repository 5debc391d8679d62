/* SPDX-License-Identifier: Apache-2.0 */
/* esp_timer: alarms in order, periods without drift, states, and the record of its own lateness. */
#include "esp_timer.h"

#include "idf_check.h"

#define MAX_FIRED 16

static SemaphoreHandle_t s_done;
static int s_order[MAX_FIRED];
static int s_fired;

static void note(void *argument) {
    CHECK(strcmp(pcTaskGetName(NULL), "esp_timer") == 0);
    if (s_fired < MAX_FIRED) {
        s_order[s_fired++] = (int)(intptr_t)argument;
    }
    xSemaphoreGive(s_done);
}

static esp_timer_handle_t create(esp_timer_cb_t callback, void *argument) {
    const esp_timer_create_args_t arguments = {.callback = callback, .arg = argument, .name = "test"};
    esp_timer_handle_t timer = NULL;
    CHECK_EQUAL(esp_timer_create(&arguments, &timer), ESP_OK);
    return timer;
}

/* Callbacks come in order of their alarms, equal alarms aside. */
static void test_order(void) {
    static const uint64_t delays_us[] = {9000, 3000, 6000};
    esp_timer_handle_t timers[3];
    for (int i = 0; i < 3; i++) {
        timers[i] = create(note, (void *)(intptr_t)i);
        CHECK_EQUAL(esp_timer_start_once(timers[i], delays_us[i]), ESP_OK);
    }
    for (int i = 0; i < 3; i++) {
        CHECK(xSemaphoreTake(s_done, portMAX_DELAY));
    }
    CHECK_EQUAL(s_order[0], 1);
    CHECK_EQUAL(s_order[1], 2);
    CHECK_EQUAL(s_order[2], 0);
    for (int i = 0; i < 3; i++) {
        CHECK(!esp_timer_is_active(timers[i]));
        CHECK_EQUAL(esp_timer_delete(timers[i]), ESP_OK);
    }
}

/* The alarms of a periodic timer are start + n periods: none is skipped and none drifts. */
static void test_periodic_grid(void) {
    esp_timer_handle_t timer = create(note, NULL);
    vTaskPrioritySet(NULL, 24); /* the start and the reading of the alarm are one step */
    CHECK_EQUAL(esp_timer_start_periodic(timer, 1500), ESP_OK);
    int64_t first = esp_timer_get_next_alarm();
    vTaskPrioritySet(NULL, 10);
    for (int i = 0; i < 8; i++) {
        CHECK(xSemaphoreTake(s_done, portMAX_DELAY));
    }
    int64_t next = esp_timer_get_next_alarm();
    CHECK_EQUAL((next - first) % 1500, 0);
    CHECK(next - first >= 8 * 1500);
    uint64_t period = 0;
    CHECK_EQUAL(esp_timer_get_period(timer, &period), ESP_OK);
    CHECK_EQUAL(period, 1500);
    CHECK_EQUAL(esp_timer_stop(timer), ESP_OK);
    CHECK_EQUAL(esp_timer_delete(timer), ESP_OK);
    while (xSemaphoreTake(s_done, 0)) {
    }
}

/* A timer is started once and stopped once; what is running cannot be deleted. */
static void test_states(void) {
    esp_timer_handle_t timer = create(note, NULL);
    uint64_t expiry = 0;
    CHECK_EQUAL(esp_timer_stop(timer), ESP_ERR_INVALID_STATE);
    CHECK_EQUAL(esp_timer_restart(timer, 1000), ESP_ERR_INVALID_STATE);
    CHECK_EQUAL(esp_timer_start_once(timer, 60000000), ESP_OK);
    CHECK_EQUAL(esp_timer_start_once(timer, 60000000), ESP_ERR_INVALID_STATE);
    CHECK_EQUAL(esp_timer_delete(timer), ESP_ERR_INVALID_STATE);
    CHECK_EQUAL(esp_timer_get_expiry_time(timer, &expiry), ESP_OK);
    CHECK(expiry > 60000000);
    CHECK_EQUAL(esp_timer_restart(timer, 1000), ESP_OK);
    CHECK(xSemaphoreTake(s_done, portMAX_DELAY));
    CHECK_EQUAL(esp_timer_delete(timer), ESP_OK);
    CHECK_EQUAL(esp_timer_create(NULL, &timer), ESP_ERR_INVALID_ARG);
}

static void restart_twice(void *argument) {
    static int rounds;
    esp_timer_handle_t *timer = argument;
    if (++rounds < 3) {
        CHECK_EQUAL(esp_timer_start_once(*timer, 100), ESP_OK);
        return;
    }
    CHECK_EQUAL(esp_timer_delete(*timer), ESP_OK);
    xSemaphoreGive(s_done);
}

/* A callback may start its own timer again, and delete it. */
static void test_callback_owns_its_timer(void) {
    static esp_timer_handle_t timer;
    timer = create(restart_twice, &timer);
    CHECK_EQUAL(esp_timer_start_once(timer, 100), ESP_OK);
    CHECK(xSemaphoreTake(s_done, portMAX_DELAY));
}

#define OVERSTAY_US 5000

static void overstay(void *argument) {
    uint64_t expiry = 0;
    CHECK_EQUAL(esp_timer_get_expiry_time(argument, &expiry), ESP_OK);
    while (esp_timer_get_time() < (int64_t)expiry + OVERSTAY_US) {
    }
}

/* An alarm that comes due while another callback runs is late by what that one takes. */
static void test_lateness_behind_a_callback(void) {
    esp_timer_handle_t behind = create(note, NULL);
    esp_timer_handle_t first = create(overstay, behind);
    vboard_timer_lateness_reset();
    CHECK_EQUAL(vboard_timer_lateness_max_us(), 0);
    CHECK_EQUAL(esp_timer_start_once(behind, 20000), ESP_OK);
    CHECK_EQUAL(esp_timer_start_once(first, 1), ESP_OK);
    CHECK(xSemaphoreTake(s_done, portMAX_DELAY));
    CHECK(vboard_timer_lateness_max_us() >= OVERSTAY_US);
    CHECK_EQUAL(esp_timer_delete(first), ESP_OK);
    CHECK_EQUAL(esp_timer_delete(behind), ESP_OK);
}

/* The worst lateness is kept until it is reset, and starts afresh then. */
static void test_lateness_reset(void) {
    int64_t worst = vboard_timer_lateness_max_us();
    CHECK(worst >= OVERSTAY_US);
    vboard_timer_lateness_reset();
    CHECK_EQUAL(vboard_timer_lateness_max_us(), 0);
}

void app_main(void) {
    s_done = xSemaphoreCreateCounting(100, 0);
    vTaskPrioritySet(NULL, 10);
    test_order();
    test_periodic_grid();
    test_states();
    test_callback_owns_its_timer();
    test_lateness_behind_a_callback();
    test_lateness_reset();
    exit(0);
}
