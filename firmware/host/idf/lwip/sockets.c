/* SPDX-License-Identifier: Apache-2.0 */
// lwIP's socket calls on the kernel's sockets.
#include "lwip/sockets.h"

#include "send_buffer.h"
#include "sock.h"
#include "window.h"

// Datagrams wait in the kernel's buffer, of this size whatever the machine's default is.
#define UDP_RECEIVE_BUFFER_BYTES (104 * 1024)

static int open_sizes(int fd, lwip_sock_t *sock) {
    if (!lwip_sock_is_stream(sock)) {
        return sock->type == SOCK_DGRAM ? lwip_option_set(fd, SOL_SOCKET, SO_RCVBUF, UDP_RECEIVE_BUFFER_BYTES)
                                        : 0;
    }
    return lwip_option_set(fd, IPPROTO_TCP, TCP_MAXSEG, sock->mss_bytes) | lwip_window_open(fd, sock) |
           lwip_send_buffer_open(fd);
}

int lwip_socket(int domain, int type, int protocol) {
    int fd = __real_socket(domain, type | SOCK_CLOEXEC, protocol);
    if (fd < 0) {
        return -1;
    }
    lwip_sock_t *sock = lwip_sock_add(fd, type);
    if (sock != NULL && open_sizes(fd, sock) == 0) {
        return fd;
    }
    int error = errno;
    if (sock != NULL) {
        lwip_sock_remove(fd);
    }
    __real_close(fd);
    errno = error;
    return -1;
}

int lwip_bind(int fd, const struct sockaddr *name, socklen_t size) {
    return lwip_sock_get(fd) == NULL ? -1 : __real_bind(fd, name, size);
}

int lwip_listen(int fd, int backlog) {
    lwip_sock_t *sock = lwip_sock_get(fd);
    if (sock == NULL || (lwip_sock_is_stream(sock) && lwip_window_listen(fd, sock) != 0)) {
        return -1;
    }
    sock->listening = true;
    return __real_listen(fd, backlog);
}

// The kernel hands down more than lwIP does: time-outs and TCP_NODELAY.
static void forget_listener_s_options(int fd) {
    const struct timeval never = {0};
    __real_setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &never, sizeof(never));
    __real_setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &never, sizeof(never));
    lwip_option_set(fd, IPPROTO_TCP, TCP_NODELAY, 0);
}

int lwip_accept(int fd, struct sockaddr *address, socklen_t *size) {
    lwip_sock_t *listener = lwip_sock_get(fd);
    int accepted;
    do {
        accepted = listener == NULL ? -1 : __real_accept(fd, address, size);
    } while (accepted < 0 && errno == EINTR);
    if (accepted < 0) {
        return -1;
    }
    lwip_sock_t *sock = lwip_sock_add(accepted, listener->type);
    if (sock == NULL) {
        __real_close(accepted);
        errno = ENFILE;
        return -1;
    }
    sock->window_bytes = listener->window_bytes;
    sock->send_buffer_bytes = listener->send_buffer_bytes;
    sock->mss_bytes = listener->mss_bytes;
    __real_fcntl(accepted, F_SETFD, FD_CLOEXEC);
    forget_listener_s_options(accepted);
    return accepted;
}

// A signal ends the kernel's wait, not the connection's set-up.
static int wait_connected(int fd) {
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    while (__real_poll(&p, 1, -1) < 0 && errno == EINTR) {
    }
    int error = lwip_option_get(fd, SOL_SOCKET, SO_ERROR);
    errno = error;
    return error == 0 ? 0 : -1;
}

int lwip_connect(int fd, const struct sockaddr *name, socklen_t size) {
    lwip_sock_t *sock = lwip_sock_get(fd);
    if (sock == NULL) {
        return -1;
    }
    int status = __real_connect(fd, name, size);
    if (status != 0 && errno == EINTR) {
        status = wait_connected(fd);
    }
    if (lwip_sock_is_stream(sock) && (status == 0 || errno == EINPROGRESS)) {
        int error = errno;
        lwip_window_connected(fd, sock);
        errno = error;
    }
    return status;
}

int lwip_shutdown(int fd, int how) {
    return lwip_sock_get(fd) == NULL ? -1 : __real_shutdown(fd, how);
}

int lwip_close(int fd) {
    if (lwip_sock_get(fd) == NULL) {
        return -1;
    }
    lwip_sock_remove(fd);
    return __real_close(fd);
}

int lwip_getpeername(int fd, struct sockaddr *name, socklen_t *size) {
    return lwip_sock_get(fd) == NULL ? -1 : getpeername(fd, name, size);
}

int lwip_getsockname(int fd, struct sockaddr *name, socklen_t *size) {
    return lwip_sock_get(fd) == NULL ? -1 : getsockname(fd, name, size);
}

ssize_t lwip_recvfrom(int fd, void *data, size_t size, int flags, struct sockaddr *from,
                      socklen_t *from_size) {
    lwip_sock_t *sock = lwip_sock_get(fd);
    if (sock == NULL) {
        return -1;
    }
    ssize_t n;
    do {
        n = __real_recvfrom(fd, data, size, flags & ~MSG_WAITALL, from, from_size);
    } while (n < 0 && errno == EINTR);
    if (lwip_sock_is_stream(sock) && !(flags & MSG_PEEK)) {
        lwip_window_read(fd, sock, n);
    }
    return n;
}

ssize_t lwip_recv(int fd, void *data, size_t size, int flags) {
    return lwip_recvfrom(fd, data, size, flags, NULL, NULL);
}

ssize_t lwip_read(int fd, void *data, size_t size) {
    return lwip_recv(fd, data, size, 0);
}

ssize_t lwip_recvmsg(int fd, struct msghdr *message, int flags) {
    lwip_sock_t *sock = lwip_sock_get(fd);
    if (sock == NULL) {
        return -1;
    }
    ssize_t n;
    do {
        n = __real_recvmsg(fd, message, flags & ~MSG_WAITALL);
    } while (n < 0 && errno == EINTR);
    if (lwip_sock_is_stream(sock) && !(flags & MSG_PEEK)) {
        lwip_window_read(fd, sock, n);
    }
    return n;
}

ssize_t lwip_readv(int fd, const struct iovec *parts, int count) {
    struct msghdr message = {.msg_iov = (struct iovec *)parts, .msg_iovlen = (size_t)count};
    return lwip_recvmsg(fd, &message, 0);
}

ssize_t lwip_sendto(int fd, const void *data, size_t size, int flags, const struct sockaddr *to,
                    socklen_t to_size) {
    lwip_sock_t *sock = lwip_sock_get(fd);
    if (sock == NULL) {
        return -1;
    }
    if (lwip_sock_is_stream(sock)) {
        return lwip_send_buffer_write(fd, sock, data, size, flags);
    }
    ssize_t n;
    do {
        n = __real_sendto(fd, data, size, flags, to, to_size);
    } while (n < 0 && errno == EINTR);
    return n;
}

ssize_t lwip_send(int fd, const void *data, size_t size, int flags) {
    return lwip_sendto(fd, data, size, flags, NULL, 0);
}

ssize_t lwip_write(int fd, const void *data, size_t size) {
    return lwip_send(fd, data, size, 0);
}

static ssize_t send_parts(int fd, lwip_sock_t *sock, const struct msghdr *message, int flags) {
    size_t count = message->msg_iovlen;
    while (count > 0 && message->msg_iov[count - 1].iov_len == 0) {
        count--;
    }
    ssize_t done = 0;
    for (size_t i = 0; i < count; i++) {
        const struct iovec *part = &message->msg_iov[i];
        int more = i + 1 < count ? MSG_MORE : 0;
        ssize_t n = lwip_send_buffer_write(fd, sock, part->iov_base, part->iov_len, flags | more);
        if (n < 0) {
            return done > 0 ? done : -1;
        }
        done += n;
        if ((size_t)n < part->iov_len) {
            break;
        }
    }
    return done;
}

ssize_t lwip_sendmsg(int fd, const struct msghdr *message, int flags) {
    lwip_sock_t *sock = lwip_sock_get(fd);
    if (sock == NULL) {
        return -1;
    }
    return lwip_sock_is_stream(sock) ? send_parts(fd, sock, message, flags)
                                     : __real_sendmsg(fd, message, flags);
}

ssize_t lwip_writev(int fd, const struct iovec *parts, int count) {
    struct msghdr message = {.msg_iov = (struct iovec *)parts, .msg_iovlen = (size_t)count};
    return lwip_sendmsg(fd, &message, 0);
}

const char *lwip_inet_ntop(int family, const void *source, char *text, socklen_t size) {
    return inet_ntop(family, source, text, size);
}

int lwip_inet_pton(int family, const char *text, void *destination) {
    return inet_pton(family, text, destination);
}
