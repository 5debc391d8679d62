/* SPDX-License-Identifier: Apache-2.0 */
/* A board's date is the machine's, also as that is set, until the firmware makes it the board's own. */
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>

#include "idf_check.h"

#define HOUR_S 3600

static time_t s_machine_set_by_s;

/* libc's, as --wrap has it: the machine's date is set without setting it. */
int clock_gettime(clockid_t clock, struct timespec *now) {
    const int status = (int)syscall(SYS_clock_gettime, clock, now);
    now->tv_sec += clock == CLOCK_REALTIME ? s_machine_set_by_s : 0;
    return status;
}

static void test_follows_the_machine(void) {
    const time_t before = time(NULL);
    s_machine_set_by_s += HOUR_S;
    CHECK(time(NULL) >= before + HOUR_S);
}

/* The board's own clock goes on from the machine's as it is then. */
static void test_a_slow_change_begins_now(void) {
    struct timeval before, now;
    s_machine_set_by_s += HOUR_S;
    CHECK_EQUAL(gettimeofday(&before, NULL), 0);
    CHECK_EQUAL(adjtime(&(struct timeval){.tv_sec = 1}, NULL), 0);
    s_machine_set_by_s += HOUR_S; /* no longer the board's */
    CHECK_EQUAL(gettimeofday(&now, NULL), 0);
    CHECK(!timercmp(&now, &before, <));
    CHECK(now.tv_sec < before.tv_sec + HOUR_S);
}

void app_main(void) {
    test_follows_the_machine();
    test_a_slow_change_begins_now();
    exit(0);
}
