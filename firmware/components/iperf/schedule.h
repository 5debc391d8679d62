/* SPDX-License-Identifier: Apache-2.0 */
/* When each block of a paced stream is due: every one counts from the first, so the rate does not drift. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "esp_timer.h"
#include "freertos/FreeRTOS.h"
#include "freertos/semphr.h"

typedef struct {
    uint64_t rate_bps; /* 0: unpaced */
    uint64_t rest;     /* of dividing, in 1/rate us */
    int64_t due_us;    /* of the next block */
    int64_t rested_us; /* when the task last let others run */
    int64_t late_us, late_max_us;
    esp_timer_handle_t timer;
    SemaphoreHandle_t due;
} iperf_schedule_t;

esp_err_t iperf_schedule_create(iperf_schedule_t *schedule);
void iperf_schedule_delete(iperf_schedule_t *schedule);

/* The first block is due at `now_us`. */
void iperf_schedule_begin(iperf_schedule_t *schedule, uint64_t rate_bps, int64_t now_us);

/* Sleep towards the time when the next block is due, for at most 50 ms, and wait out the last microseconds.
 * True when it has come: then note how late that is. */
bool iperf_schedule_wait(iperf_schedule_t *schedule);

/* A block of so many bytes is on its way: plan the next. */
void iperf_schedule_next(iperf_schedule_t *schedule, uint32_t bytes);

/* Let tasks of lower priority run for a tick. */
void iperf_schedule_rest(iperf_schedule_t *schedule);
