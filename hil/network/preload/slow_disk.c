/* SPDX-License-Identifier: Apache-2.0 */
/* SIMULATES a slow disk below one folder: what a program writes there takes longer. Loaded with LD_PRELOAD.
 *
 *   HIL_SLOW_DISK_FOLDER        absolute path without symbolic links
 *   HIL_SLOW_DISK_RATE          bytes per second
 *   HIL_SLOW_DISK_LATENCY_US    besides, for each block and for each fsync
 *
 * write() costs its bytes at once. Bytes of fwrite() cost when stdio hands them on: a block of 4096 when it
 * is full, the rest at fflush() and fclose(). fsync() and fdatasync() cost one latency. The program sleeps
 * meanwhile, as it would in the kernel; the file itself is written as ever.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&(name)))dlsym(RTLD_NEXT, #name))
#define NS_PER_S 1000000000LL

enum { BLOCK_BYTES = 4096, FILES_MAX = 1024 };

static const char *s_folder = "";
static size_t s_folder_length;
static long long s_rate = 1, s_latency_ns;
static long long s_overslept_ns;
static size_t s_buffered_bytes[FILES_MAX]; /* by descriptor: what fwrite() took and stdio still has */

static long long setting(const char *name) {
    const char *text = getenv(name);
    return text != NULL ? atoll(text) : 0;
}

__attribute__((constructor)) static void read_settings(void) {
    const char *folder = getenv("HIL_SLOW_DISK_FOLDER");
    s_folder = folder != NULL ? folder : "";
    s_folder_length = strlen(s_folder);
    s_rate = setting("HIL_SLOW_DISK_RATE");
    s_latency_ns = setting("HIL_SLOW_DISK_LATENCY_US") * 1000;
}

static bool is_slow(int file) {
    int error = errno;
    char name[64], path[PATH_MAX];
    struct stat status;
    bool slow = false;
    if (s_folder_length > 0 && s_rate > 0 && fstat(file, &status) == 0 && S_ISREG(status.st_mode)) {
        snprintf(name, sizeof(name), "/proc/self/fd/%d", file);
        ssize_t length = readlink(name, path, sizeof(path));
        slow = length > (ssize_t)s_folder_length && memcmp(path, s_folder, s_folder_length) == 0 &&
               path[s_folder_length] == '/';
    }
    errno = error;
    return slow;
}

static long long now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* What a sleep took too long is taken off the next one, up to the next fsync(). */
static void take_time(size_t bytes, size_t latencies) {
    int error = errno;
    long long ns = (long long)bytes * NS_PER_S / s_rate + (long long)latencies * s_latency_ns;
    long long end_ns = now_ns() + ns - s_overslept_ns;
    struct timespec end = {(time_t)(end_ns / NS_PER_S), (long)(end_ns % NS_PER_S)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL) == EINTR) {
    }
    s_overslept_ns = now_ns() - end_ns;
    errno = error;
}

/* What stdio had of a file has gone on to it. */
static void pass_on(int file, size_t bytes) {
    s_buffered_bytes[file] -= bytes;
    if (bytes > 0 && is_slow(file)) {
        take_time(bytes, (bytes + BLOCK_BYTES - 1) / BLOCK_BYTES);
    }
}

static bool is_known(int file) {
    return file >= 0 && file < FILES_MAX;
}

static void pass_on_rest(FILE *stream) {
    int file = stream != NULL ? fileno(stream) : -1;
    if (is_known(file)) {
        pass_on(file, s_buffered_bytes[file]);
    }
}

size_t fwrite(const void *data, size_t size, size_t count, FILE *stream) {
    size_t written = REAL(fwrite)(data, size, count, stream);
    int file = fileno(stream);
    if (is_known(file)) {
        s_buffered_bytes[file] += written * size;
        pass_on(file, s_buffered_bytes[file] / BLOCK_BYTES * BLOCK_BYTES);
    }
    return written;
}

int fflush(FILE *stream) {
    int result = REAL(fflush)(stream);
    pass_on_rest(stream);
    return result;
}

int fclose(FILE *stream) {
    pass_on_rest(stream);
    return REAL(fclose)(stream);
}

ssize_t write(int file, const void *data, size_t bytes) {
    ssize_t written = REAL(write)(file, data, bytes);
    if (written > 0 && is_slow(file)) {
        take_time((size_t)written, 1);
    }
    return written;
}

static int sync_with(int (*real)(int), int file) {
    int result = real(file);
    if (is_slow(file)) {
        take_time(0, 1);
        s_overslept_ns = 0;
    }
    return result;
}

int fsync(int file) {
    return sync_with(REAL(fsync), file);
}

int fdatasync(int file) {
    return sync_with(REAL(fdatasync), file);
}
