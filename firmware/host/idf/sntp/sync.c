/* SPDX-License-Identifier: Apache-2.0 */
// What a time that has come does to the clock.
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/time.h>

#include "esp_sntp.h"

#define INTERVAL_MIN_MS 15000

static atomic_int s_mode = SNTP_SYNC_MODE_IMMED;
static atomic_int s_status = SNTP_SYNC_STATUS_RESET;
static _Atomic(sntp_sync_time_cb_t) s_callback;
static atomic_uint s_interval_ms = CONFIG_LWIP_SNTP_UPDATE_DELAY;

static void set_at_once(const struct timeval *tv) {
    settimeofday(tv, NULL);
    sntp_set_sync_status(SNTP_SYNC_STATUS_COMPLETED);
}

static void set_smoothly(const struct timeval *tv) {
    struct timeval now;
    gettimeofday(&now, NULL);
    const int64_t delta_us =
        ((int64_t)tv->tv_sec - now.tv_sec) * 1000000 + ((int64_t)tv->tv_usec - now.tv_usec);
    const struct timeval delta = {.tv_sec = delta_us / 1000000, .tv_usec = delta_us % 1000000};
    if (adjtime(&delta, NULL) == 0) {
        sntp_set_sync_status(SNTP_SYNC_STATUS_IN_PROGRESS);
    } else {
        set_at_once(tv);
    }
}

__attribute__((weak)) void sntp_sync_time(struct timeval *tv) {
    if (sntp_get_sync_mode() == SNTP_SYNC_MODE_IMMED) {
        set_at_once(tv);
    } else {
        set_smoothly(tv);
    }
    sntp_sync_time_cb_t callback = s_callback;
    if (callback != NULL) {
        callback(tv);
    }
}

void sntp_set_sync_mode(sntp_sync_mode_t sync_mode) {
    s_mode = (int)sync_mode;
}

sntp_sync_mode_t sntp_get_sync_mode(void) {
    return (sntp_sync_mode_t)s_mode;
}

void sntp_set_sync_status(sntp_sync_status_t sync_status) {
    s_status = (int)sync_status;
}

sntp_sync_status_t sntp_get_sync_status(void) {
    const int status = s_status;
    struct timeval left = {0};
    if (status == SNTP_SYNC_STATUS_RESET) {
        return SNTP_SYNC_STATUS_RESET;
    }
    if (status == SNTP_SYNC_STATUS_IN_PROGRESS) {
        adjtime(NULL, &left);
    }
    if (left.tv_sec != 0 || left.tv_usec != 0) {
        return SNTP_SYNC_STATUS_IN_PROGRESS;
    }
    sntp_set_sync_status(SNTP_SYNC_STATUS_RESET);
    return SNTP_SYNC_STATUS_COMPLETED;
}

void sntp_set_time_sync_notification_cb(sntp_sync_time_cb_t callback) {
    s_callback = callback;
}

void sntp_set_sync_interval(uint32_t interval_ms) {
    s_interval_ms = interval_ms < INTERVAL_MIN_MS ? INTERVAL_MIN_MS : interval_ms;
}

uint32_t sntp_get_sync_interval(void) {
    return s_interval_ms;
}
