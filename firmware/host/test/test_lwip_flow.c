/* SPDX-License-Identifier: Apache-2.0 */
// One TCP flow over lwIP's socket calls, as a bench has one: tests/firmware/test_host_sockets.py and
// tools/bench/window.py say which.
//
//   test_lwip_flow connect=ADDRESS | listen=1  port=N  send=1 | receive=1  [window=BYTES] [buffer=BYTES]
//                  [mss=BYTES] [omit_ms=N] [run_ms=N] [chunk=BYTES]
//
// Output: `ready` when listening; `sizes window=… buffer=… mss=…` as the connection has them; after omit_ms
// and run_ms `flow bytes=… us=… calls=…`. Without arguments nothing.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lwip/sockets.h"

static int s_count;
static char **s_words;
static char s_data[16384];

static const char *text(const char *key) {
    size_t size = strlen(key);
    for (int i = 1; i < s_count; i++) {
        if (strncmp(s_words[i], key, size) == 0 && s_words[i][size] == '=') {
            return s_words[i] + size + 1;
        }
    }
    return NULL;
}

static int number(const char *key, int otherwise) {
    return text(key) == NULL ? otherwise : atoi(text(key));
}

static void stop(const char *what) {
    perror(what);
    exit(1);
}

static void set(int fd, int level, int option, const char *key) {
    int value = number(key, 0);
    if (value != 0 && setsockopt(fd, level, option, &value, sizeof(value)) != 0) {
        stop(key);
    }
}

static int get(int fd, int level, int option) {
    int value = 0;
    socklen_t size = sizeof(value);
    if (getsockopt(fd, level, option, &value, &size) != 0) {
        stop("getsockopt");
    }
    return value;
}

static int make_connection(int fd) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)number("port", 0))};
    if (text("connect") != NULL) {
        inet_pton(AF_INET, text("connect"), &address.sin_addr);
        return connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0 ? fd : -1;
    }
    if (bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0 || listen(fd, 1) != 0) {
        return -1;
    }
    puts("ready");
    int accepted = accept(fd, NULL, NULL);
    close(fd);
    return accepted;
}

static int64_t now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

// Moves bytes until `until_us` or the connection's end.
static int64_t move(int fd, int64_t until_us, int *calls) {
    size_t chunk = (size_t)number("chunk", 4096);
    int64_t moved = 0;
    while (now_us() < until_us) {
        ssize_t n = text("send") != NULL ? send(fd, s_data, chunk, 0) : recv(fd, s_data, chunk, 0);
        if (n <= 0) {
            break;
        }
        moved += n;
        ++*calls;
    }
    return moved;
}

int main(int argc, char **argv) {
    s_count = argc;
    s_words = argv;
    if (argc == 1) {
        return 0;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    set(fd, SOL_SOCKET, SO_RCVBUF, "window");
    set(fd, SOL_SOCKET, SO_SNDBUF, "buffer");
    set(fd, IPPROTO_TCP, TCP_MAXSEG, "mss");
    fd = make_connection(fd);
    if (fd < 0) {
        stop("connecting");
    }
    printf("sizes window=%d buffer=%d mss=%d\n", get(fd, SOL_SOCKET, SO_RCVBUF),
           get(fd, SOL_SOCKET, SO_SNDBUF), get(fd, IPPROTO_TCP, TCP_MAXSEG));
    int calls = 0;
    move(fd, now_us() + number("omit_ms", 0) * INT64_C(1000), &calls);
    calls = 0;
    int64_t start_us = now_us();
    int64_t bytes = move(fd, start_us + number("run_ms", 1000) * INT64_C(1000), &calls);
    printf("flow bytes=%lld us=%lld calls=%d\n", (long long)bytes, (long long)(now_us() - start_us), calls);
    close(fd);
    return 0;
}
