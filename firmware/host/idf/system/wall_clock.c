/* SPDX-License-Identifier: Apache-2.0 */
/* The board's date and time: the machine's until the firmware sets it, for this program alone. The linker
 * gives libc's names to these calls (firmware/host/CMakeLists.txt); the machine's clock is never set. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

#include "vboard.h"

#define SLEW_SHIFT 6 /* adjtime() moves the clock by 1/64 of the time that passes, as on the chip */
#define SLEW_LIMIT_US (35 * 60 * INT64_C(1000000))

int __real_clock_gettime(clockid_t clock, struct timespec *time);

static pthread_mutex_t s_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t s_once = PTHREAD_ONCE_INIT;
static atomic_bool s_own; /* false: the board's time is the machine's */
static int64_t s_boot_us; /* the time of its own clock, where it has one, at an uptime of 0 */
static int64_t s_left_us; /* that adjtime() has still to move it by */
static int64_t s_moved_at_us;

static int64_t read_us(clockid_t clock) {
    struct timespec now;
    __real_clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void own(void) {
    atomic_store_explicit(&s_own, true, memory_order_release);
}

/* What the board's clock was at its reset, if from now on it goes on from the machine's. */
static int64_t machines_boot_us(void) {
    return read_us(CLOCK_REALTIME) - (read_us(CLOCK_MONOTONIC) - vboard()->boot_us);
}

/* The board's time at its reset, if that was said; its own clock from then on, if the crystal is off. */
static void begin(void) {
    const int64_t said_s = vboard()->wall_time_s;
    if (said_s >= 0 || vboard()->crystal_ppm != 0) {
        s_boot_us = said_s >= 0 ? said_s * 1000000 : machines_boot_us();
        own();
    }
}

/* Locked. What has passed since the last look has moved the clock a bit. */
static void move(void) {
    const int64_t now_us = read_us(CLOCK_MONOTONIC);
    int64_t step_us = (now_us - s_moved_at_us) >> SLEW_SHIFT;
    if (s_left_us == 0) {
        s_moved_at_us = now_us;
    } else if (step_us > 0) {
        step_us = step_us < llabs(s_left_us) ? step_us : llabs(s_left_us);
        step_us = s_left_us < 0 ? -step_us : step_us;
        s_boot_us += step_us;
        s_left_us -= step_us;
        s_moved_at_us = now_us;
    }
}

/* Whether the board has a clock of its own. It is read once for a time: two clocks, read one after the
 * other, would tell a moment before the last one where the program had to wait between them. */
static bool own_us(int64_t *us) {
    pthread_once(&s_once, begin);
    if (!atomic_load_explicit(&s_own, memory_order_acquire)) {
        return false;
    }
    pthread_mutex_lock(&s_lock);
    move();
    *us = s_boot_us + vboard_uptime_us();
    pthread_mutex_unlock(&s_lock);
    return true;
}

static int64_t now_us(void) {
    int64_t us;
    return own_us(&us) ? us : read_us(CLOCK_REALTIME);
}

static int set_us(int64_t us) {
    pthread_once(&s_once, begin);
    pthread_mutex_lock(&s_lock);
    s_boot_us = us - vboard_uptime_us();
    s_left_us = 0;
    s_moved_at_us = read_us(CLOCK_MONOTONIC);
    own();
    pthread_mutex_unlock(&s_lock);
    return 0;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *time) {
    int64_t us;
    if (clock != CLOCK_REALTIME || !own_us(&us)) {
        return __real_clock_gettime(clock, time);
    }
    *time = (struct timespec){.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
    return 0;
}

int __wrap_clock_settime(clockid_t clock, const struct timespec *time) {
    if (clock != CLOCK_REALTIME || time == NULL) {
        errno = EINVAL;
        return -1;
    }
    return set_us((int64_t)time->tv_sec * 1000000 + time->tv_nsec / 1000);
}

int __wrap_gettimeofday(struct timeval *tv, void *zone) {
    (void)zone;
    const int64_t us = now_us();
    if (tv != NULL) {
        *tv = (struct timeval){.tv_sec = us / 1000000, .tv_usec = us % 1000000};
    }
    return 0;
}

int __wrap_settimeofday(const struct timeval *tv, const void *zone) {
    (void)zone;
    return tv == NULL ? 0 : set_us((int64_t)tv->tv_sec * 1000000 + tv->tv_usec);
}

time_t __wrap_time(time_t *time) {
    const time_t now = now_us() / 1000000;
    if (time != NULL) {
        *time = now;
    }
    return now;
}

int __wrap_adjtime(const struct timeval *delta, struct timeval *olddelta) {
    const int64_t wanted_us = delta == NULL ? 0 : (int64_t)delta->tv_sec * 1000000 + delta->tv_usec;
    if (llabs(wanted_us) >= SLEW_LIMIT_US) {
        errno = EINVAL;
        return -1;
    }
    pthread_once(&s_once, begin);
    pthread_mutex_lock(&s_lock);
    move();
    const int64_t left_us = s_left_us;
    if (delta != NULL) {
        if (!atomic_load_explicit(&s_own, memory_order_relaxed)) {
            s_boot_us = machines_boot_us();
        }
        s_left_us = wanted_us;
        s_moved_at_us = read_us(CLOCK_MONOTONIC);
        own();
    }
    pthread_mutex_unlock(&s_lock);
    if (olddelta != NULL) {
        *olddelta = (struct timeval){.tv_sec = left_us / 1000000, .tv_usec = left_us % 1000000};
    }
    return 0;
}
