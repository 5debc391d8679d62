/* SPDX-License-Identifier: Apache-2.0 */
// lwIP's send buffer on the host: when it is full, and who waits for it.
#include "socket_rig.h"

#define SEND_BUFFER CONFIG_LWIP_TCP_SND_BUF_DEFAULT

static int queued(int fd) {
    int bytes = -1;
    CHECK_EQUAL(ioctl(fd, TIOCOUTQ, &bytes), 0);
    return bytes;
}

// Writes until nothing more is taken.
static size_t fill(int fd) {
    static const char data[4096];
    size_t taken = 0;
    ssize_t n;
    while ((n = send(fd, data, sizeof(data), MSG_DONTWAIT)) > 0) {
        CHECK(queued(fd) <= SEND_BUFFER);
        taken += (size_t)n;
    }
    CHECK_EQUAL(errno, EAGAIN);
    return taken;
}

static void drain(int fd, size_t bytes) {
    char data[4096];
    while (bytes > 0) {
        ssize_t n = recv(fd, data, bytes < sizeof(data) ? bytes : sizeof(data), 0);
        CHECK(n > 0);
        bytes -= (size_t)n;
    }
}

static int writable(int fd, int timeout_ms) {
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    int ready = poll(&p, 1, timeout_ms);
    CHECK_EQUAL(p.events, POLLOUT);
    CHECK_EQUAL(p.revents, ready == 1 ? POLLOUT : 0);
    struct timeval now = {0};
    fd_set set_of_one;
    FD_ZERO(&set_of_one);
    FD_SET(fd, &set_of_one);
    CHECK_EQUAL(select(fd + 1, NULL, &set_of_one, NULL, &now), ready);
    CHECK_EQUAL(FD_ISSET(fd, &set_of_one) != 0, ready);
    return ready;
}

// Whether it is writable with so many bytes free more than are queued. Probes of a closed window may bring
// the peer more: what was seen counts when it was so before and after.
static int writable_with(int fd, int more) {
    int before, ready;
    do {
        before = queued(fd);
        CHECK_EQUAL(set(fd, SOL_SOCKET, SO_SNDBUF, 2 * before + more), 0);
        ready = writable(fd, 1);
    } while (queued(fd) != before);
    return ready;
}

static void a_full_send_buffer_is_not_writable(void) {
    pair_t p = connection();
    CHECK_EQUAL(writable(p.here, -1), 1);
    size_t taken = fill(p.here);
    CHECK_EQUAL(writable_with(p.here, 0), 0); // half of it is free: TCP_SNDLOWAT
    CHECK_EQUAL(writable_with(p.here, 2), 1);
    CHECK_EQUAL(set(p.here, SOL_SOCKET, SO_SNDBUF, SEND_BUFFER), 0);
    drain(p.there, taken);
    CHECK_EQUAL(writable(p.here, -1), 1);
    end(p);
}

static void sending_waits_no_longer_than_its_time_out(void) {
    static const char data[16 * SEND_BUFFER];
    const struct timeval timeout = {.tv_usec = 20000};
    pair_t p = connection();
    CHECK_EQUAL(setsockopt(p.here, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)), 0);
    ssize_t part = send(p.here, data, sizeof(data), 0); // what there was room for
    CHECK(part >= SEND_BUFFER && part < (ssize_t)sizeof(data));
    while (part > 0) {
        part = send(p.here, data, sizeof(data), 0);
    }
    CHECK_EQUAL(errno, EAGAIN);
    end(p);
}

static void a_dead_connection_ends_the_wait(void) {
    static const char data[SEND_BUFFER];
    const struct linger reset = {.l_onoff = 1};
    pair_t p = connection();
    fill(p.here);
    CHECK_EQUAL(setsockopt(p.there, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)), 0);
    CHECK_EQUAL(close(p.there), 0);
    CHECK_EQUAL(send(p.here, data, sizeof(data), 0), -1);
    CHECK_EQUAL(errno, ECONNRESET);
    close(p.here);
}

static void non_blocking_is_kept(void) {
    char byte;
    int on = 1, unread = -1;
    pair_t p = connection();
    CHECK_EQUAL(fcntl(p.here, F_SETFL, fcntl(p.here, F_GETFL, 0) | O_NONBLOCK), 0);
    CHECK_EQUAL(recv(p.here, &byte, 1, 0), -1);
    CHECK_EQUAL(errno, EAGAIN);
    while (write(p.here, "x", 1) > 0) {
    }
    CHECK_EQUAL(errno, EAGAIN);
    CHECK_EQUAL(ioctl(p.there, FIONBIO, &on), 0);
    CHECK_EQUAL(ioctl(p.there, FIONREAD, &unread), 0);
    drain(p.there, (size_t)unread);
    end(p);
}

static void parts_arrive_as_one_stream(void) {
    static char data[CONFIG_LWIP_TCP_MSS + 100];
    struct iovec parts[] = {{.iov_base = data, .iov_len = sizeof(data)}, {.iov_base = "end", .iov_len = 3}};
    char rest[8] = {0};
    pair_t p = connection();
    CHECK_EQUAL(writev(p.here, parts, 2), sizeof(data) + 3);
    drain(p.there, sizeof(data)); // the last, short segment comes without another write
    CHECK_EQUAL(recv(p.there, rest, sizeof(rest), MSG_WAITALL), 3); // which lwIP does not know
    CHECK_EQUAL(strcmp(rest, "end"), 0);
    end(p);
}

int main(void) {
    a_full_send_buffer_is_not_writable();
    sending_waits_no_longer_than_its_time_out();
    a_dead_connection_ends_the_wait();
    non_blocking_is_kept();
    parts_arrive_as_one_stream();
    return 0;
}
