/* SPDX-License-Identifier: Apache-2.0 */
// Moves the clock of a process by the seconds that the file HIL_CLOCK holds at that moment; CLOCK_MONOTONIC
// stays, as it does where somebody sets a clock. libfaketime 0.9.10 spoils clock_nanosleep(CLOCK_MONOTONIC,
// TIMER_ABSTIME), which is CPython's time.sleep().
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int (*real_clock_gettime)(clockid_t, struct timespec *);
static const volatile int64_t *offset_s;

__attribute__((constructor)) static void start(void) {
    static const int64_t none;
    real_clock_gettime = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    const char *path = getenv("HIL_CLOCK");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *map = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(none), PROT_READ, MAP_SHARED, fd, 0);
    offset_s = map == MAP_FAILED ? &none : map;
    if (fd >= 0) {
        close(fd);
    }
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    if (real_clock_gettime == NULL) { // another library's constructor was first
        start();
    }
    int result = real_clock_gettime(clock, now);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        now->tv_sec += *offset_s;
    }
    return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    (void)zone;
    struct timespec fine;
    int result = clock_gettime(CLOCK_REALTIME, &fine);
    now->tv_sec = fine.tv_sec;
    now->tv_usec = fine.tv_nsec / 1000;
    return result;
}

time_t time(time_t *where) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (where != NULL) {
        *where = now.tv_sec;
    }
    return now.tv_sec;
}
