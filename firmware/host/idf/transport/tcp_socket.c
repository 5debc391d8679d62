#include "tcp_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "esp_tls_errors.h"
#include "sdkconfig.h"

#ifndef CONFIG_LWIP_TCP_MSS
#define CONFIG_LWIP_TCP_MSS 1440
#endif
#ifndef CONFIG_LWIP_TCP_SND_BUF_DEFAULT
#define CONFIG_LWIP_TCP_SND_BUF_DEFAULT 5760
#endif
#ifndef CONFIG_LWIP_TCP_WND_DEFAULT
#define CONFIG_LWIP_TCP_WND_DEFAULT 5760
#endif

#define SND_BUF_BYTES CONFIG_LWIP_TCP_SND_BUF_DEFAULT
#define MSS_BYTES CONFIG_LWIP_TCP_MSS
// lwIP's opt.h: TCP_SNDLOWAT = min(max(TCP_SND_BUF / 2, 2 * TCP_MSS + 1), TCP_SND_BUF - 1).
#define LARGER(a, b) ((a) > (b) ? (a) : (b))
#define SMALLER(a, b) ((a) < (b) ? (a) : (b))
#define SND_LOWAT_BYTES SMALLER(LARGER(SND_BUF_BYTES / 2, 2 * MSS_BYTES + 1), SND_BUF_BYTES - 1)

// The kernel's own send buffer must never be the limit: many small unacknowledged segments cost far more
// kernel memory than payload.
#define KERNEL_SND_BUF_BYTES (256 * 1024)
// The kernel tells nobody when acknowledged bytes leave the queue, so a full buffer is looked at this often.
#define DRAIN_POLL_US 100

struct tcp_socket {
    int fd;
    int timeout_ms;
    atomic_int holders;
};

static int64_t now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static int set_int(int fd, int level, int option, int value) {
    return setsockopt(fd, level, option, &value, sizeof(value));
}

static int apply_lwip_sizes(int fd) {
    // SO_RCVBUF: the kernel doubles the value and gives half of that to the window, so this is the window.
    int failed = set_int(fd, IPPROTO_TCP, TCP_MAXSEG, MSS_BYTES);
    failed |= set_int(fd, SOL_SOCKET, SO_RCVBUF, CONFIG_LWIP_TCP_WND_DEFAULT);
    failed |= set_int(fd, SOL_SOCKET, SO_SNDBUF, KERNEL_SND_BUF_BYTES);
    return failed;
}

static int apply_timeouts(int fd, int timeout_ms) {
    struct timeval tv = {.tv_sec = timeout_ms / 1000, .tv_usec = (timeout_ms % 1000) * 1000};
    return setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)) |
           setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv));
}

static int poll_fd(int fd, short events, int64_t deadline_us, bool forever) {
    for (;;) {
        int64_t left_us = deadline_us - now_us();
        int wait_ms = forever ? -1 : (left_us > 0 ? (int)((left_us + 999) / 1000) : 0);
        struct pollfd p = {.fd = fd, .events = events};
        int ready = poll(&p, 1, wait_ms);
        if (ready < 0 && errno == EINTR) {
            continue;
        }
        if (ready > 0 && !(p.revents & (events | POLLHUP))) {
            errno = p.revents & POLLNVAL ? EBADF : EIO;
            return -1;
        }
        return ready;
    }
}

static int socket_error(int fd) {
    int error = 0;
    socklen_t size = sizeof(error);
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

static int finish_connect(int fd, int64_t deadline_us) {
    int ready = poll_fd(fd, POLLOUT, deadline_us, false);
    if (ready == 0) {
        return ETIMEDOUT;
    }
    int error = socket_error(fd);
    return error == 0 && ready < 0 ? EIO : error;
}

static int connect_fd(int fd, const struct addrinfo *a, int timeout_ms) {
    int flags = fcntl(fd, F_GETFL);
    if (fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0) {
        return errno;
    }
    if (connect(fd, a->ai_addr, a->ai_addrlen) != 0) {
        int error = errno == EINPROGRESS ? finish_connect(fd, now_us() + (int64_t)timeout_ms * 1000) : errno;
        if (error != 0) {
            return error;
        }
    }
    return fcntl(fd, F_SETFL, flags) == 0 ? 0 : errno;
}

static struct addrinfo *resolve(const char *host, int port) {
    char service[8];
    snprintf(service, sizeof(service), "%d", port);
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    return getaddrinfo(host, service, &hints, &found) == 0 ? found : NULL;
}

static tcp_socket_t *wrap(int fd, int timeout_ms) {
    tcp_socket_t *s = malloc(sizeof(*s));
    if (s != NULL) {
        s->fd = fd;
        s->timeout_ms = timeout_ms;
        atomic_init(&s->holders, 1);
    }
    return s;
}

static int open_and_connect(const struct addrinfo *a, int timeout_ms, esp_err_t *error, int *sock_errno) {
    *error = ESP_ERR_ESP_TLS_CANNOT_CREATE_SOCKET;
    int fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
    if (fd < 0) {
        *sock_errno = errno;
        return -1;
    }
    *error = ESP_ERR_ESP_TLS_SOCKET_SETOPT_FAILED;
    *sock_errno = apply_lwip_sizes(fd) | apply_timeouts(fd, timeout_ms) ? errno : 0;
    if (*sock_errno == 0) {
        *sock_errno = connect_fd(fd, a, timeout_ms);
        *error = *sock_errno == ETIMEDOUT ? ESP_ERR_ESP_TLS_CONNECTION_TIMEOUT
                                          : ESP_ERR_ESP_TLS_FAILED_CONNECT_TO_HOST;
    }
    if (*sock_errno != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

tcp_socket_t *tcp_socket_connect(const char *host, int port, int timeout_ms, esp_err_t *error,
                                 int *sock_errno) {
    struct addrinfo *addresses = resolve(host, port);
    if (addresses == NULL) {
        *error = ESP_ERR_ESP_TLS_CANNOT_RESOLVE_HOSTNAME;
        *sock_errno = EHOSTUNREACH;
        return NULL;
    }
    // ESP-IDF tries the first address only.
    int fd = open_and_connect(addresses, timeout_ms, error, sock_errno);
    freeaddrinfo(addresses);
    tcp_socket_t *s = fd < 0 ? NULL : wrap(fd, timeout_ms);
    if (fd >= 0 && s == NULL) {
        close(fd);
    }
    return s;
}

tcp_socket_t *tcp_socket_hold(tcp_socket_t *s) {
    atomic_fetch_add(&s->holders, 1);
    return s;
}

void tcp_socket_release(tcp_socket_t *s) {
    if (atomic_fetch_sub(&s->holders, 1) == 1) {
        close(s->fd);
        free(s);
    }
}

void tcp_socket_shutdown(tcp_socket_t *s) {
    shutdown(s->fd, SHUT_RDWR);
}

int tcp_socket_fd(const tcp_socket_t *s) {
    return s->fd;
}

int tcp_socket_poll_read(tcp_socket_t *s, int timeout_ms) {
    return poll_fd(s->fd, POLLIN, now_us() + (int64_t)timeout_ms * 1000, timeout_ms < 0);
}

static int free_bytes(const tcp_socket_t *s) {
    int queued = 0;
    if (ioctl(s->fd, TIOCOUTQ, &queued) != 0) {
        return -1;
    }
    return queued > SND_BUF_BYTES ? 0 : SND_BUF_BYTES - queued;
}

// Waits until `wanted` bytes of the emulated send buffer are free: the free bytes, 0 on time-out, -1 on
// error.
static int wait_for_room(tcp_socket_t *s, int wanted, int timeout_ms) {
    const struct timespec pause = {.tv_nsec = DRAIN_POLL_US * 1000};
    int64_t deadline_us = now_us() + (int64_t)timeout_ms * 1000;
    for (;;) {
        int free_now = free_bytes(s);
        if (free_now < 0 || free_now >= wanted) {
            return free_now;
        }
        if (timeout_ms >= 0 && now_us() >= deadline_us) {
            return 0;
        }
        // A dead connection never drains: look for its error before sleeping again.
        struct pollfd p = {.fd = s->fd};
        if (poll(&p, 1, 0) > 0 && (p.revents & (POLLERR | POLLHUP | POLLNVAL))) {
            errno = p.revents & POLLERR ? socket_error(s->fd) : EPIPE;
            return -1;
        }
        nanosleep(&pause, NULL);
    }
}

int tcp_socket_poll_write(tcp_socket_t *s, int timeout_ms) {
    int room = wait_for_room(s, SND_LOWAT_BYTES + 1, timeout_ms);
    return room > 0 ? 1 : room;
}

ssize_t tcp_socket_receive(tcp_socket_t *s, void *buffer, size_t len) {
    for (;;) {
        ssize_t n = recv(s->fd, buffer, len, 0);
        if (n >= 0 || errno != EINTR) {
            return n;
        }
    }
}

ssize_t tcp_socket_send(tcp_socket_t *s, const void *data, size_t len) {
    int wanted = SMALLER((int)SMALLER(len, (size_t)SND_BUF_BYTES), SMALLER(MSS_BYTES, SND_BUF_BYTES));
    int room = wait_for_room(s, wanted, s->timeout_ms);
    if (room <= 0) {
        errno = room == 0 ? EAGAIN : errno;
        return -1;
    }
    for (;;) {
        ssize_t n = send(s->fd, data, SMALLER(len, (size_t)room), MSG_NOSIGNAL);
        if (n >= 0 || errno != EINTR) {
            return n;
        }
    }
}
