/* SPDX-License-Identifier: Apache-2.0 */
// poll and select: a TCP socket is writable when lwIP would say so. The kernel would, much earlier.
#define _GNU_SOURCE
#include "lwip/sockets.h"

#include <string.h>
#include <time.h>

#include "send_buffer.h"
#include "sock.h"

static bool is_full(int fd) {
    const lwip_sock_t *sock = lwip_sock_find(fd);
    return sock != NULL && lwip_sock_is_stream(sock) && lwip_send_buffer_is_full(fd, sock);
}

// What is left until the deadline; no more than a pause where full buffers have to be looked at again.
static struct timespec left(int64_t deadline_us, bool held) {
    int64_t left_us = deadline_us == INT64_MAX ? INT32_MAX * INT64_C(1000) : deadline_us - lwip_now_us();
    left_us = LARGER(left_us, 0);
    if (held) {
        left_us = SMALLER(left_us, LWIP_SEND_BUFFER_PAUSE.tv_nsec / 1000);
    }
    return (struct timespec){.tv_sec = left_us / 1000000, .tv_nsec = left_us % 1000000 * 1000};
}

static bool over(int ready, int64_t deadline_us) {
    if (ready < 0 && errno == EINTR) {
        return false;
    }
    return ready != 0 || (deadline_us != INT64_MAX && lwip_now_us() >= deadline_us);
}

// Full sockets are not asked about; which these are is kept in `held`.
static bool withhold_poll(struct pollfd *fds, nfds_t count, fd_set *held) {
    bool any = false;
    for (nfds_t i = 0; i < count; i++) {
        if ((fds[i].events & POLLOUT) && is_full(fds[i].fd)) {
            fds[i].events &= (short)~POLLOUT;
            FD_SET(fds[i].fd, held);
            any = true;
        }
    }
    return any;
}

static void give_back_poll(struct pollfd *fds, nfds_t count, fd_set *held) {
    for (nfds_t i = 0; i < count; i++) {
        if (lwip_sock_find(fds[i].fd) != NULL && FD_ISSET(fds[i].fd, held)) {
            fds[i].events |= POLLOUT;
        }
    }
}

int lwip_poll(struct pollfd *fds, nfds_t count, int timeout_ms) {
    int64_t deadline_us = timeout_ms < 0 ? INT64_MAX : lwip_now_us() + (int64_t)timeout_ms * 1000;
    int ready;
    do {
        fd_set held;
        FD_ZERO(&held);
        bool any = withhold_poll(fds, count, &held);
        struct timespec wait = left(deadline_us, any);
        ready = ppoll(fds, count, &wait, NULL);
        if (any) {
            give_back_poll(fds, count, &held);
        }
    } while (!over(ready, deadline_us));
    return ready;
}

static bool withhold_select(int count, fd_set *write) {
    bool any = false;
    for (int fd = 0; fd < count; fd++) {
        if (FD_ISSET(fd, write) && is_full(fd)) {
            FD_CLR(fd, write);
            any = true;
        }
    }
    return any;
}

static void copy(fd_set *to, const fd_set *from) {
    if (to != NULL) {
        *to = *from;
    }
}

int lwip_select(int count, fd_set *read, fd_set *write, fd_set *except, struct timeval *timeout) {
    int64_t deadline_us = INT64_MAX;
    if (timeout != NULL) {
        deadline_us = lwip_now_us() + (int64_t)timeout->tv_sec * 1000000 + timeout->tv_usec;
    }
    fd_set none, found[3];
    FD_ZERO(&none);
    int ready;
    do {
        copy(&found[0], read != NULL ? read : &none);
        copy(&found[1], write != NULL ? write : &none);
        copy(&found[2], except != NULL ? except : &none);
        bool held = withhold_select(count, &found[1]);
        struct timespec wait = left(deadline_us, held);
        ready = pselect(count, &found[0], &found[1], &found[2], &wait, NULL);
    } while (!over(ready, deadline_us));
    if (ready >= 0) {
        copy(read, &found[0]);
        copy(write, &found[1]);
        copy(except, &found[2]);
    }
    return ready;
}
