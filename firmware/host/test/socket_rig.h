/* SPDX-License-Identifier: Apache-2.0 */
// Sockets of host/idf/lwip for its tests: made, asked, connected over the loopback.
#pragma once

#include "idf_check.h"
#include "lwip/sockets.h"

static inline int tcp(void) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(fd >= 0);
    return fd;
}

static inline int get(int fd, int level, int option) {
    int value = -1;
    socklen_t size = sizeof(value);
    CHECK_EQUAL(getsockopt(fd, level, option, &value, &size), 0);
    return value;
}

// 0, or the error.
static inline int set(int fd, int level, int option, int value) {
    return setsockopt(fd, level, option, &value, sizeof(value)) == 0 ? 0 : errno;
}

static inline struct sockaddr_in address_of(int fd) {
    struct sockaddr_in address;
    socklen_t size = sizeof(address);
    CHECK_EQUAL(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    return address;
}

static inline void bind_loopback(int fd) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    CHECK_EQUAL(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
}

static inline int connect_to(int fd, int listener) {
    struct sockaddr_in address = address_of(listener);
    return connect(fd, (struct sockaddr *)&address, sizeof(address));
}

typedef struct pair {
    int here;
    int there;
} pair_t;

// A connection; the window of `there` is as small as it may be.
static inline pair_t connection(void) {
    int listener = tcp();
    CHECK_EQUAL(set(listener, SOL_SOCKET, SO_RCVBUF, 1152), 0);
    bind_loopback(listener);
    CHECK_EQUAL(listen(listener, 1), 0);
    pair_t p = {.here = tcp()};
    CHECK_EQUAL(connect_to(p.here, listener), 0);
    p.there = accept(listener, NULL, NULL);
    CHECK(p.there >= 0);
    close(listener);
    return p;
}

static inline void end(pair_t p) {
    CHECK_EQUAL(close(p.here), 0);
    CHECK_EQUAL(close(p.there), 0);
}
