/* SPDX-License-Identifier: Apache-2.0 */
// Options, fcntl, ioctl. The sizes that a chip has from its sdkconfig can be changed here at run time, and
// are answered as they are in force.
#include "lwip/sockets.h"

#include <sys/time.h>

#include "send_buffer.h"
#include "sock.h"
#include "window.h"

// What Linux takes for TCP_MAXSEG at least (TCP_MIN_MSS), and what Ethernet's frames hold.
#define MSS_MIN_BYTES 88
#define MSS_MAX_BYTES 1460

static int fail(int error) {
    errno = error;
    return -1;
}

static bool is_connected(int fd) {
    struct tcp_info info = {0};
    socklen_t size = sizeof(info);
    __real_getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size);
    return info.tcpi_state != TCP_CLOSE && info.tcpi_state != TCP_LISTEN;
}

static int set_window(int fd, lwip_sock_t *sock, int bytes) {
    if (bytes < LWIP_WINDOW_MIN_BYTES || bytes > LWIP_WINDOW_MAX_BYTES) {
        return fail(EINVAL);
    }
    sock->window_bytes = bytes;
    if (is_connected(fd)) {
        return lwip_window_change(fd, sock);
    }
    return sock->listening ? lwip_window_listen(fd, sock) : lwip_window_open(fd, sock);
}

static int set_send_buffer(lwip_sock_t *sock, int bytes) {
    if (bytes < LWIP_SEND_BUFFER_MIN_BYTES || bytes > LWIP_SEND_BUFFER_MAX_BYTES) {
        return fail(EINVAL);
    }
    sock->send_buffer_bytes = bytes;
    return 0;
}

static int set_mss(int fd, lwip_sock_t *sock, int bytes) {
    if (is_connected(fd)) {
        return fail(EISCONN); // it is agreed on with the SYN
    }
    if (bytes < MSS_MIN_BYTES || bytes > MSS_MAX_BYTES ||
        lwip_option_set(fd, IPPROTO_TCP, TCP_MAXSEG, bytes) != 0) {
        return fail(EINVAL);
    }
    sock->mss_bytes = bytes;
    return set_window(fd, sock, sock->window_bytes);
}

// The calls that a size option stands for; -2: no size option.
static int set_size(int fd, lwip_sock_t *sock, int level, int option, int bytes) {
    if (level == SOL_SOCKET && option == SO_RCVBUF) {
        return set_window(fd, sock, bytes);
    }
    if (level == SOL_SOCKET && option == SO_SNDBUF) {
        return set_send_buffer(sock, bytes);
    }
    return level == IPPROTO_TCP && option == TCP_MAXSEG ? set_mss(fd, sock, bytes) : -2;
}

// What sending has to know.
static void note(lwip_sock_t *sock, int level, int option, const void *value) {
    if (level == SOL_SOCKET && option == SO_SNDTIMEO) {
        const struct timeval *timeout = value;
        sock->send_timeout_ms = (int)(timeout->tv_sec * 1000 + timeout->tv_usec / 1000);
    } else if (level == IPPROTO_TCP && option == TCP_NODELAY) {
        sock->nodelay = *(const int *)value != 0;
    }
}

int lwip_setsockopt(int fd, int level, int option, const void *value, socklen_t size) {
    lwip_sock_t *sock = lwip_sock_get(fd);
    if (sock == NULL) {
        return -1;
    }
    if (lwip_sock_is_stream(sock) && size >= sizeof(int)) {
        int status = set_size(fd, sock, level, option, *(const int *)value);
        if (status != -2) {
            return status;
        }
    }
    int status = __real_setsockopt(fd, level, option, value, size);
    if (status == 0) {
        note(sock, level, option, value);
    }
    return status;
}

// 0: no size that this layer answers.
static int answer_size(const lwip_sock_t *sock, int level, int option, int in_kernel) {
    bool receive = level == SOL_SOCKET && option == SO_RCVBUF;
    bool send = level == SOL_SOCKET && option == SO_SNDBUF;
    if (!receive && !send) {
        return 0;
    }
    if (lwip_sock_is_stream(sock)) {
        return receive ? sock->window_bytes : sock->send_buffer_bytes;
    }
    return in_kernel / 2; // which the kernel has doubled
}

int lwip_getsockopt(int fd, int level, int option, void *value, socklen_t *size) {
    lwip_sock_t *sock = lwip_sock_get(fd);
    if (sock == NULL || __real_getsockopt(fd, level, option, value, size) != 0) {
        return -1;
    }
    if (*size == sizeof(int)) {
        int answer = answer_size(sock, level, option, *(int *)value);
        *(int *)value = answer != 0 ? answer : *(int *)value;
    }
    return 0;
}

int lwip_fcntl(int fd, int command, int value) {
    lwip_sock_t *sock = lwip_sock_get(fd);
    if (sock == NULL) {
        return -1;
    }
    int status = __real_fcntl(fd, command, value);
    if (status == 0 && command == F_SETFL) {
        sock->nonblocking = (value & O_NONBLOCK) != 0;
    }
    return status;
}

int lwip_ioctl(int fd, long command, void *argument) {
    lwip_sock_t *sock = lwip_sock_get(fd);
    if (sock == NULL) {
        return -1;
    }
    int status = __real_ioctl(fd, (unsigned long)command, argument);
    if (status == 0 && command == FIONBIO) {
        sock->nonblocking = *(const int *)argument != 0;
    }
    return status;
}
