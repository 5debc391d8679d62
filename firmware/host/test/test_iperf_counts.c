/* SPDX-License-Identifier: Apache-2.0 */
/* components/iperf: what arrived, in which interval, and when the next block is due. */
#include "expect.h"

#include "arrivals.h"
#include "esp_timer.h"
#include "intervals.h"
#include "schedule.h"

enum { INTERVAL_US = 100000, WALL_US = 1000000000 };

static void take(iperf_arrivals_t *arrivals, int64_t id) {
    iperf_arrivals_take(arrivals, id, WALL_US, WALL_US);
}

/* ---- arrivals ---- */

/*   number   1 3 2 3 6     lost 4, 5; late 2; twice 3 */
static void late_twice_and_lost_are_told_apart(void) {
    static const int64_t ids[] = {1, 3, 2, 3, 6};
    iperf_arrivals_t arrivals = {0};
    iperf_row_t row = {0};
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        take(&arrivals, ids[i]);
    }
    EXPECT(iperf_arrivals_lost(&arrivals) == 2 && arrivals.duplicate_count == 1);
    iperf_arrivals_close(&arrivals, &row);
    EXPECT(row.expected_count == 6 && row.lost_count == 2 && row.out_of_order_count == 1);
}

/* What one interval counted as lost and the next one received is taken off the next loss, so that the sum is
 * right. */
static void a_late_one_is_no_loss_in_the_sum(void) {
    iperf_arrivals_t arrivals = {0};
    iperf_row_t rows[3] = {0};
    take(&arrivals, 1);
    take(&arrivals, 4);
    iperf_arrivals_close(&arrivals, &rows[0]);
    take(&arrivals, 2);
    iperf_arrivals_close(&arrivals, &rows[1]);
    take(&arrivals, 7);
    iperf_arrivals_close(&arrivals, &rows[2]);
    EXPECT(rows[0].lost_count == 2 && rows[1].lost_count == 0 && rows[2].lost_count == 1);
    EXPECT(rows[0].lost_count + rows[1].lost_count + rows[2].lost_count == iperf_arrivals_lost(&arrivals));
    EXPECT(rows[1].expected_count == 0 && rows[1].out_of_order_count == 1);
}

static void a_number_from_nowhere_is_ignored(void) {
    iperf_arrivals_t arrivals = {0};
    EXPECT(iperf_arrivals_take(&arrivals, 1, -1, 0));
    EXPECT(!iperf_arrivals_take(&arrivals, 0, -1, 0));
    EXPECT(!iperf_arrivals_take(&arrivals, INT64_MIN, -1, 0));
    EXPECT(!iperf_arrivals_take(&arrivals, INT64_C(1) << 40, -1, 0));
    EXPECT(arrivals.ignored_count == 3 && arrivals.highest == 1 && iperf_arrivals_lost(&arrivals) == 0);
}

/* However far the numbers jump, what came once is not taken for having come twice. */
static void a_jump_forgets_what_it_passed(void) {
    iperf_arrivals_t arrivals = {0};
    take(&arrivals, 1);
    take(&arrivals, 1 + IPERF_SEEN_DATAGRAMS);
    take(&arrivals, 40 + 3 * IPERF_SEEN_DATAGRAMS);
    take(&arrivals, 1 + 3 * IPERF_SEEN_DATAGRAMS);
    EXPECT(arrivals.duplicate_count == 0 && arrivals.out_of_order_count == 1);
    take(&arrivals, 1 + 3 * IPERF_SEEN_DATAGRAMS);
    EXPECT(arrivals.duplicate_count == 1);
}

/*   transit  5000 5000 5160 5000 ms    clocks an hour apart do not matter; |D| is 0, 160, 160 us
 *   jitter   J += (|D| - J) / 16:  0, 10, 19.4 */
static void jitter_is_that_of_rfc_3550(void) {
    static const int64_t transits_us[] = {0, 0, 160, 0};
    const int64_t apart_us = INT64_C(3600000000);
    iperf_arrivals_t arrivals = {0};
    iperf_row_t row = {0};
    for (int64_t i = 0; i < 4; i++) {
        int64_t sent_us = WALL_US + i * 1000;
        iperf_arrivals_take(&arrivals, i + 1, sent_us, sent_us + apart_us + transits_us[i]);
    }
    iperf_arrivals_close(&arrivals, &row);
    EXPECT(row.jitter_us == 19 && row.transit_difference_max_us == 160 &&
           row.transit_difference_mean_us == 106);
    iperf_arrivals_close(&arrivals, &row);
    EXPECT(row.jitter_us == 19 && row.transit_difference_max_us == 0); /* smoothed on, differences anew */
}

static void without_time_stamps_there_is_no_jitter(void) {
    iperf_arrivals_t arrivals = {0};
    iperf_arrivals_take(&arrivals, 1, -1, 5);
    iperf_arrivals_take(&arrivals, 2, -1, 50000);
    EXPECT(!arrivals.has_timestamps && iperf_arrivals_jitter_us(&arrivals) == 0);
}

/* ---- intervals ---- */

static void bytes_count_where_they_came(void) {
    iperf_row_t rows[3];
    iperf_intervals_t intervals = {.rows = rows, .capacity = 3, .interval_us = INTERVAL_US};
    const int64_t start_us = INT64_C(5) << 32; /* beyond 32 bits */
    iperf_intervals_begin(&intervals, start_us);
    iperf_intervals_add(&intervals, start_us + INTERVAL_US - 1, 10);
    iperf_intervals_add(&intervals, start_us + INTERVAL_US, 20);
    iperf_intervals_add(&intervals, start_us + 3 * INTERVAL_US + 7, 40);
    EXPECT(intervals.count == 3 && !intervals.overflow);
    EXPECT(rows[0].bytes == 10 && rows[1].bytes == 20 && rows[2].bytes == 0);
    EXPECT(intervals.interval_bytes == 40 && intervals.total_bytes == 70);
    iperf_intervals_advance(&intervals, start_us + 4 * INTERVAL_US);
    EXPECT(intervals.overflow && intervals.count == 3);
}

/*   interval   0    1    2    3    steady from 1 to 3: 20 + 40 bytes, whatever follows */
static void the_steady_stretch_has_its_own_bytes(void) {
    iperf_row_t rows[4];
    iperf_intervals_t intervals = {
        .rows = rows, .capacity = 4, .interval_us = INTERVAL_US, .steady_from = 1, .steady_until = 3};
    iperf_intervals_begin(&intervals, 0);
    for (int i = 0; i < 4; i++) {
        iperf_intervals_add(&intervals, i * INTERVAL_US, (size_t)10 << i);
    }
    iperf_intervals_end_steady(&intervals);
    EXPECT(intervals.steady_bytes == 20 + 40 && intervals.total_bytes == 150);
}

static void a_stretch_without_a_plan_ends_when_told(void) {
    iperf_row_t row;
    iperf_intervals_t intervals = {.rows = &row, .capacity = 1, .interval_us = INTERVAL_US};
    iperf_intervals_begin(&intervals, 0);
    iperf_intervals_add(&intervals, 1, 10);
    iperf_intervals_end_steady(&intervals);
    iperf_intervals_add(&intervals, 2, 10);
    iperf_intervals_end_steady(&intervals);
    EXPECT(intervals.steady_bytes == 10);
}

static void four_gibibytes_are_not_too_much(void) {
    iperf_row_t row;
    iperf_intervals_t intervals = {.rows = &row, .capacity = 1, .interval_us = INTERVAL_US};
    iperf_intervals_begin(&intervals, 0);
    for (int i = 0; i < 5; i++) {
        iperf_intervals_add(&intervals, 1, (size_t)1 << 30);
    }
    iperf_intervals_advance(&intervals, INTERVAL_US);
    EXPECT(intervals.total_bytes == (uint64_t)5 << 30 && row.bytes == UINT32_MAX);
}

/* ---- schedule ---- */

/* 1470 bytes at 7,000,001 bit/s are due each 1679.9997… us: after seven seconds they are not a microsecond
 * off. */
static void a_schedule_does_not_drift(void) {
    iperf_schedule_t schedule = {0};
    iperf_schedule_begin(&schedule, 7000001, 1000);
    const int64_t blocks = 4167;
    for (int64_t i = 0; i < blocks; i++) {
        iperf_schedule_next(&schedule, 1470);
    }
    EXPECT(schedule.due_us == 1000 + blocks * 1470 * 8 * 1000000 / 7000001);
}

/* A block is never early, and one that is late says by how much. */
static void a_block_is_due_in_time(void) {
    iperf_schedule_t schedule = {0};
    EXPECT(iperf_schedule_create(&schedule) == ESP_OK);
    const int64_t start_us = esp_timer_get_time();
    iperf_schedule_begin(&schedule, 1000000, start_us);
    for (int i = 1; i <= 4; i++) {
        iperf_schedule_next(&schedule, i < 3 ? 125 : 10000); /* 1, 2, 82, 162 ms */
        while (!iperf_schedule_wait(&schedule)) {
        }
        EXPECT(esp_timer_get_time() >= schedule.due_us);
    }
    schedule.due_us = esp_timer_get_time() - 500000;
    EXPECT(iperf_schedule_wait(&schedule) && schedule.late_us >= 500000);
    EXPECT(schedule.late_max_us >= schedule.late_us);
    iperf_schedule_begin(&schedule, 0, start_us);
    EXPECT(iperf_schedule_wait(&schedule)); /* unpaced: always */
    iperf_schedule_delete(&schedule);
}

void app_main(void) {
    late_twice_and_lost_are_told_apart();
    a_late_one_is_no_loss_in_the_sum();
    a_number_from_nowhere_is_ignored();
    a_jump_forgets_what_it_passed();
    jitter_is_that_of_rfc_3550();
    without_time_stamps_there_is_no_jitter();
    bytes_count_where_they_came();
    the_steady_stretch_has_its_own_bytes();
    a_stretch_without_a_plan_ends_when_told();
    four_gibibytes_are_not_too_much();
    a_schedule_does_not_drift();
    a_block_is_due_in_time();
    exit(EXIT_SUCCESS);
}
