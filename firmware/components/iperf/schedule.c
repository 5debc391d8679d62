/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule.h"

#include "freertos/task.h"

enum {
    SLICE_US = 50000,        /* how long to sleep without a look at whether the host aborted */
    SLEEP_MIN_US = 80,       /* esp_timer and a switch of tasks take some 30 us */
    BUSY_US = 30,            /* of each wait, so that the timer's lateness does not show */
    REST_EVERY_US = 1000000, /* a sender that is behind its plan never waits */
};

static void on_due(void *argument) {
    const iperf_schedule_t *schedule = argument;
    xSemaphoreGive(schedule->due);
}

esp_err_t iperf_schedule_create(iperf_schedule_t *schedule) {
    const esp_timer_create_args_t timer = {.callback = on_due, .arg = schedule, .name = "iperf"};
    schedule->due = xSemaphoreCreateBinary();
    return schedule->due == NULL ? ESP_ERR_NO_MEM : esp_timer_create(&timer, &schedule->timer);
}

void iperf_schedule_delete(iperf_schedule_t *schedule) {
    if (schedule->timer != NULL) {
        esp_timer_stop(schedule->timer);
        esp_timer_delete(schedule->timer);
    }
    if (schedule->due != NULL) {
        vSemaphoreDelete(schedule->due);
    }
    schedule->timer = NULL;
    schedule->due = NULL;
}

void iperf_schedule_begin(iperf_schedule_t *schedule, uint64_t rate_bps, int64_t now_us) {
    schedule->rate_bps = rate_bps;
    schedule->rest = 0;
    schedule->due_us = now_us;
    schedule->rested_us = now_us;
    schedule->late_us = 0;
    schedule->late_max_us = 0;
}

void iperf_schedule_rest(iperf_schedule_t *schedule) {
    vTaskDelay(1);
    schedule->rested_us = esp_timer_get_time();
}

static void sleep_us(iperf_schedule_t *schedule, int64_t left_us) {
    int64_t time_us = left_us > SLICE_US ? SLICE_US : left_us - BUSY_US;
    xSemaphoreTake(schedule->due, 0); /* an alarm that came after its wait was over */
    if (esp_timer_start_once(schedule->timer, (uint64_t)time_us) == ESP_OK) {
        xSemaphoreTake(schedule->due, pdMS_TO_TICKS(2 * SLICE_US / 1000));
        esp_timer_stop(schedule->timer);
    }
    schedule->rested_us = esp_timer_get_time();
}

bool iperf_schedule_wait(iperf_schedule_t *schedule) {
    if (schedule->rate_bps == 0) {
        return true;
    }
    int64_t now_us = esp_timer_get_time();
    if (schedule->due_us - now_us >= SLEEP_MIN_US) {
        sleep_us(schedule, schedule->due_us - now_us);
    } else if (now_us - schedule->rested_us >= REST_EVERY_US) {
        iperf_schedule_rest(schedule);
    }
    now_us = esp_timer_get_time();
    if (schedule->due_us - now_us >= SLEEP_MIN_US) {
        return false;
    }
    while (now_us < schedule->due_us) {
        now_us = esp_timer_get_time();
    }
    schedule->late_us = now_us - schedule->due_us;
    schedule->late_max_us =
        schedule->late_us > schedule->late_max_us ? schedule->late_us : schedule->late_max_us;
    return true;
}

void iperf_schedule_next(iperf_schedule_t *schedule, uint32_t bytes) {
    if (schedule->rate_bps > 0) {
        uint64_t dividend = (uint64_t)bytes * 8000000 + schedule->rest;
        schedule->due_us += (int64_t)(dividend / schedule->rate_bps);
        schedule->rest = dividend % schedule->rate_bps;
    }
}
