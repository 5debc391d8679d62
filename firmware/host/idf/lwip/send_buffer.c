/* SPDX-License-Identifier: Apache-2.0 */
#include "send_buffer.h"

#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <time.h>

// The kernel's own send buffer must never be the limit: many small unacknowledged segments cost far more
// kernel memory than payload.
#define KERNEL_SEND_BUFFER_BYTES (256 * 1024)

// The kernel tells nobody when acknowledged bytes leave the queue.
const struct timespec LWIP_SEND_BUFFER_PAUSE = {.tv_nsec = 100 * 1000};

int lwip_send_buffer_open(int fd) {
    return lwip_option_set(fd, SOL_SOCKET, SO_SNDBUF, KERNEL_SEND_BUFFER_BYTES);
}

static int free_bytes(int fd, const lwip_sock_t *sock) {
    int queued = 0;
    if (__real_ioctl(fd, TIOCOUTQ, &queued) != 0) {
        return -1;
    }
    return queued > sock->send_buffer_bytes ? 0 : sock->send_buffer_bytes - queued;
}

// A dead connection never drains.
static bool is_dead(int fd) {
    struct pollfd p = {.fd = fd};
    return __real_poll(&p, 1, 0) > 0 && (p.revents & (POLLERR | POLLHUP | POLLNVAL)) != 0;
}

// lwIP's opt.h: TCP_SNDLOWAT = min(max(TCP_SND_BUF / 2, 2 * TCP_MSS + 1), TCP_SND_BUF - 1).
static int low_water_bytes(const lwip_sock_t *sock) {
    int buffer = sock->send_buffer_bytes;
    return SMALLER(LARGER(buffer / 2, 2 * sock->mss_bytes + 1), buffer - 1);
}

bool lwip_send_buffer_is_full(int fd, const lwip_sock_t *sock) {
    int now_free = free_bytes(fd, sock);
    return now_free >= 0 && now_free <= low_water_bytes(sock) && !is_dead(fd);
}

// Waits until something is free, as lwIP does: the free bytes, 0 when the deadline has passed, -1 on error.
static int wait_for_room(int fd, const lwip_sock_t *sock, int64_t until_us) {
    for (;;) {
        int room = free_bytes(fd, sock);
        if (room != 0) {
            return room;
        }
        if (lwip_now_us() >= until_us) {
            return 0;
        }
        if (is_dead(fd)) {
            return 1; // the kernel's send says what is wrong
        }
        nanosleep(&LWIP_SEND_BUFFER_PAUSE, NULL);
    }
}

// lwIP's Nagle holds a segment that is not full while anything is unacknowledged, unless the buffer is full.
// Linux's holds it only while another such is, so each of iperf's writes of 16 KiB would leave a short
// segment in flight, and the buffer's last bytes behind it.
static bool holds_tail(const lwip_sock_t *sock, int part, int room) {
    bool outstanding = room < sock->send_buffer_bytes || part > sock->mss_bytes;
    return !sock->nodelay && outstanding && part < room;
}

static int unsent_bytes(int fd) {
    int unsent = 0;
    return __real_ioctl(fd, SIOCOUTQNSD, &unsent) == 0 ? unsent : 0;
}

// A tail that is held with MSG_MORE goes with the next acknowledgement; the last one may have come before.
static void after_held(int fd, const lwip_sock_t *sock) {
    int unsent = unsent_bytes(fd);
    if (unsent > 0 && sock->send_buffer_bytes - free_bytes(fd, sock) == unsent) {
        lwip_option_set(fd, IPPROTO_TCP, TCP_CORK, 0);
    }
}

static void after_full(int fd, const lwip_sock_t *sock) {
    if (!sock->nodelay && unsent_bytes(fd) > 0) {
        lwip_option_set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
        lwip_option_set(fd, IPPROTO_TCP, TCP_NODELAY, 0);
    }
}

// -1 with errno, or 0 for a signal that came in between.
static ssize_t write_part(int fd, const lwip_sock_t *sock, const char *data, size_t size, int flags,
                          int64_t until_us) {
    int room = wait_for_room(fd, sock, until_us);
    if (room <= 0) {
        errno = room == 0 ? EAGAIN : errno;
        return -1;
    }
    int part = (int)SMALLER(size, (size_t)room);
    bool holds = holds_tail(sock, part, room);
    ssize_t n = __real_send(fd, data, (size_t)part, flags | MSG_NOSIGNAL | (holds ? MSG_MORE : 0));
    if (n < 0) {
        return errno == EINTR ? 0 : -1;
    }
    if (holds) {
        after_held(fd, sock);
    } else if (part == room) {
        after_full(fd, sock);
    }
    return n;
}

static int64_t deadline_us(const lwip_sock_t *sock) {
    int timeout_ms = sock->send_timeout_ms;
    return timeout_ms == 0 ? INT64_MAX : lwip_now_us() + (int64_t)timeout_ms * 1000;
}

ssize_t lwip_send_buffer_write(int fd, const lwip_sock_t *sock, const char *data, size_t size, int flags) {
    bool waits = !(flags & MSG_DONTWAIT) && !sock->nonblocking;
    int64_t until_us = waits ? deadline_us(sock) : 0;
    size_t done = 0;
    while (done < size) {
        ssize_t n = write_part(fd, sock, data + done, size - done, flags, until_us);
        if (n < 0) {
            return done > 0 ? (ssize_t)done : -1;
        }
        done += (size_t)n;
    }
    return (ssize_t)done;
}
