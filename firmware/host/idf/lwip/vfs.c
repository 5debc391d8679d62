/* SPDX-License-Identifier: Apache-2.0 */
// The calls' usual names, which the linker brings here (--wrap, firmware/host/CMakeLists.txt). On a chip
// socket(), send() … are lwIP's, and read(), write(), close(), fcntl(), ioctl(), poll() and select() go by
// the descriptor through ESP-IDF's VFS; here all of them go by the descriptor.
#include <stdarg.h>

#include "lwip/sockets.h"
#include "sock.h"

#define BY_DESCRIPTOR(fd, name, ...)                                                                         \
    (lwip_sock_find(fd) != NULL ? lwip_##name(__VA_ARGS__) : __real_##name(__VA_ARGS__))

// lwIP has no flags in a socket's type: who gives Linux's is a part of host/idf that is no socket on a chip.
int __wrap_socket(int domain, int type, int protocol) {
    bool is_lwip = (domain == AF_INET || domain == AF_INET6) && !(type & (SOCK_CLOEXEC | SOCK_NONBLOCK));
    return is_lwip ? lwip_socket(domain, type, protocol) : __real_socket(domain, type, protocol);
}

int __wrap_bind(int fd, const struct sockaddr *name, socklen_t size) {
    return BY_DESCRIPTOR(fd, bind, fd, name, size);
}

int __wrap_listen(int fd, int backlog) {
    return BY_DESCRIPTOR(fd, listen, fd, backlog);
}

int __wrap_accept(int fd, struct sockaddr *address, socklen_t *size) {
    return BY_DESCRIPTOR(fd, accept, fd, address, size);
}

int __wrap_connect(int fd, const struct sockaddr *name, socklen_t size) {
    return BY_DESCRIPTOR(fd, connect, fd, name, size);
}

int __wrap_shutdown(int fd, int how) {
    return BY_DESCRIPTOR(fd, shutdown, fd, how);
}

int __wrap_getsockopt(int fd, int level, int option, void *value, socklen_t *size) {
    return BY_DESCRIPTOR(fd, getsockopt, fd, level, option, value, size);
}

int __wrap_setsockopt(int fd, int level, int option, const void *value, socklen_t size) {
    return BY_DESCRIPTOR(fd, setsockopt, fd, level, option, value, size);
}

ssize_t __wrap_recv(int fd, void *data, size_t size, int flags) {
    return BY_DESCRIPTOR(fd, recv, fd, data, size, flags);
}

ssize_t __wrap_recvfrom(int fd, void *data, size_t size, int flags, struct sockaddr *from,
                        socklen_t *from_size) {
    return BY_DESCRIPTOR(fd, recvfrom, fd, data, size, flags, from, from_size);
}

ssize_t __wrap_recvmsg(int fd, struct msghdr *message, int flags) {
    return BY_DESCRIPTOR(fd, recvmsg, fd, message, flags);
}

ssize_t __wrap_send(int fd, const void *data, size_t size, int flags) {
    return BY_DESCRIPTOR(fd, send, fd, data, size, flags);
}

ssize_t __wrap_sendto(int fd, const void *data, size_t size, int flags, const struct sockaddr *to,
                      socklen_t to_size) {
    return BY_DESCRIPTOR(fd, sendto, fd, data, size, flags, to, to_size);
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags) {
    return BY_DESCRIPTOR(fd, sendmsg, fd, message, flags);
}

int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms) {
    return lwip_poll(fds, count, timeout_ms);
}

int __wrap_select(int count, fd_set *read, fd_set *write, fd_set *except, struct timeval *timeout) {
    return lwip_select(count, read, write, except, timeout);
}

ssize_t __wrap_read(int fd, void *data, size_t size) {
    return BY_DESCRIPTOR(fd, read, fd, data, size);
}

ssize_t __wrap_readv(int fd, const struct iovec *parts, int count) {
    return BY_DESCRIPTOR(fd, readv, fd, parts, count);
}

ssize_t __wrap_write(int fd, const void *data, size_t size) {
    return BY_DESCRIPTOR(fd, write, fd, data, size);
}

ssize_t __wrap_writev(int fd, const struct iovec *parts, int count) {
    return BY_DESCRIPTOR(fd, writev, fd, parts, count);
}

int __wrap_close(int fd) {
    return BY_DESCRIPTOR(fd, close, fd);
}

int __wrap_fcntl(int fd, int command, ...) {
    va_list arguments;
    va_start(arguments, command);
    long value = va_arg(arguments, long); // a number or a pointer: both are passed as a whole register
    va_end(arguments);
    return lwip_sock_find(fd) != NULL ? lwip_fcntl(fd, command, (int)value)
                                      : __real_fcntl(fd, command, value);
}

int __wrap_ioctl(int fd, unsigned long command, ...) {
    va_list arguments;
    va_start(arguments, command);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    return lwip_sock_find(fd) != NULL ? lwip_ioctl(fd, (long)command, argument)
                                      : __real_ioctl(fd, command, argument);
}
