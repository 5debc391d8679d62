/* SPDX-License-Identifier: Apache-2.0 */
/* A critical section that another core waits for. While it is held no interrupt comes on either core, so both
 * sides wait for each other for no longer than MEET_US. */
#include "spinlock.h"

#include "esp_timer.h"

enum {
    MEET_US = 1000,
    SETTLE_US = 20, /* from saying that it will enter until it surely spins; on a host, sleeps */
};

static bool await(const atomic_bool *flag) {
    int64_t deadline_us = esp_timer_get_time() + MEET_US;
    while (!atomic_load(flag)) {
        if (esp_timer_get_time() >= deadline_us) {
            return false;
        }
    }
    return true;
}

static bool hold(rtos_exchange_t *exchange) {
    atomic_store(&exchange->entering, false);
    taskENTER_CRITICAL(&exchange->lock);
    atomic_store(&exchange->held, true);
    return true;
}

static bool meet(rtos_exchange_t *exchange) {
    hold(exchange);
    if (!await(&exchange->entering)) {
        return false;
    }
    for (int64_t until_us = esp_timer_get_time() + SETTLE_US; esp_timer_get_time() < until_us;) {
    }
    return true;
}

static void give(rtos_exchange_t *exchange) {
    if (atomic_exchange(&exchange->held, false)) {
        taskEXIT_CRITICAL(&exchange->lock);
    }
}

static bool take(rtos_exchange_t *exchange, TickType_t ticks) {
    (void)ticks;
    if (!await(&exchange->held)) {
        return false;
    }
    atomic_store(&exchange->entering, true);
    taskENTER_CRITICAL(&exchange->lock);
    return true;
}

static void put_back(rtos_exchange_t *exchange) {
    taskEXIT_CRITICAL(&exchange->lock);
}

const rtos_exchange_kind_t rtos_exchange_spinlock = {
    .hold = hold, .meet = meet, .give = give, .take = take, .put_back = put_back};
