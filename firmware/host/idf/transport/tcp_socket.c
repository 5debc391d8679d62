/* SPDX-License-Identifier: Apache-2.0 */
#include "tcp_socket.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "esp_tls.h"
#include "lwip/sockets.h"
#include "tls_error.h"

struct tcp_socket {
    int fd;
    atomic_int holders;
};

static tcp_socket_t *wrap(int fd) {
    tcp_socket_t *s = malloc(sizeof(*s));
    if (s != NULL) {
        s->fd = fd;
        atomic_init(&s->holders, 1);
    } else {
        close(fd);
    }
    return s;
}

tcp_socket_t *tcp_socket_connect(const char *host, int port, const esp_tls_cfg_t *cfg, esp_err_t *error,
                                 int *sock_errno) {
    esp_tls_error_handle_t handle = tls_error_handle_create();
    int fd = -1;
    *error = handle == NULL ? ESP_ERR_NO_MEM
                            : esp_tls_plain_tcp_connect(host, (int)strlen(host), port, cfg, handle, &fd);
    if (handle != NULL) {
        esp_tls_get_and_clear_error_type(handle, ESP_TLS_ERR_TYPE_SYSTEM, sock_errno);
        tls_error_handle_delete(handle);
    }
    return fd < 0 ? NULL : wrap(fd);
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

static int poll_fd(int fd, short events, int timeout_ms) {
    struct pollfd p = {.fd = fd, .events = events};
    int ready = poll(&p, 1, timeout_ms);
    if (ready > 0 && !(p.revents & (events | POLLHUP))) {
        errno = p.revents & POLLNVAL ? EBADF : EIO;
        return -1;
    }
    return ready;
}

int tcp_socket_poll_read(tcp_socket_t *s, int timeout_ms) {
    return poll_fd(s->fd, POLLIN, timeout_ms);
}

int tcp_socket_poll_write(tcp_socket_t *s, int timeout_ms) {
    return poll_fd(s->fd, POLLOUT, timeout_ms);
}

ssize_t tcp_socket_receive(tcp_socket_t *s, void *buffer, size_t len) {
    return recv(s->fd, buffer, len, 0);
}

ssize_t tcp_socket_send(tcp_socket_t *s, const void *data, size_t len) {
    return send(s->fd, data, len, 0);
}
