/* SPDX-License-Identifier: Apache-2.0 */
// Shared by this part's files: what a socket has beside the kernel's descriptor, and the kernel's own calls.
#pragma once

#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

// ESP-IDF's defaults (components/lwip/Kconfig) where sdkconfig.h has nothing else.
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
#ifndef CONFIG_LWIP_MAX_SOCKETS
#define CONFIG_LWIP_MAX_SOCKETS 10
#endif

#define LARGER(a, b) ((a) > (b) ? (a) : (b))
#define SMALLER(a, b) ((a) < (b) ? (a) : (b))

typedef struct lwip_sock {
    atomic_int type;              // SOCK_…; 0: not a socket of this layer
    atomic_int window_bytes;      // TCP: receive window
    atomic_int send_buffer_bytes; // TCP: bytes unsent and unacknowledged at most
    atomic_int mss_bytes;         // TCP: announced, and the most that is sent
    atomic_int send_timeout_ms;   // 0: none
    atomic_bool nonblocking;
    atomic_bool nodelay;
    atomic_bool listening;
    atomic_bool window_settled; // the kernel's buffer has been fitted to segments that came
    atomic_int taken_bytes;     // read since the last window update
} lwip_sock_t;

// NULL: not a socket of this layer. lwip_sock_get sets errno to EBADF then.
lwip_sock_t *lwip_sock_find(int fd);
lwip_sock_t *lwip_sock_get(int fd);
// NULL with errno ENFILE when CONFIG_LWIP_MAX_SOCKETS are open.
lwip_sock_t *lwip_sock_add(int fd, int type);
void lwip_sock_remove(int fd);
bool lwip_sock_is_stream(const lwip_sock_t *sock);

int lwip_option_get(int fd, int level, int option); // -1: the kernel refused
int lwip_option_set(int fd, int level, int option, int value);
int64_t lwip_now_us(void);

// The kernel's calls: the linker gives those names to this layer (firmware/host/CMakeLists.txt).
int __real_socket(int domain, int type, int protocol);
int __real_bind(int fd, const struct sockaddr *address, socklen_t size);
int __real_listen(int fd, int backlog);
int __real_accept(int fd, struct sockaddr *address, socklen_t *size);
int __real_connect(int fd, const struct sockaddr *address, socklen_t size);
int __real_shutdown(int fd, int how);
int __real_getsockopt(int fd, int level, int option, void *value, socklen_t *size);
int __real_setsockopt(int fd, int level, int option, const void *value, socklen_t size);
ssize_t __real_recv(int fd, void *data, size_t size, int flags);
ssize_t __real_recvfrom(int fd, void *data, size_t size, int flags, struct sockaddr *from,
                        socklen_t *from_size);
ssize_t __real_recvmsg(int fd, struct msghdr *message, int flags);
ssize_t __real_send(int fd, const void *data, size_t size, int flags);
ssize_t __real_sendto(int fd, const void *data, size_t size, int flags, const struct sockaddr *to,
                      socklen_t to_size);
ssize_t __real_sendmsg(int fd, const struct msghdr *message, int flags);
int __real_poll(struct pollfd *fds, nfds_t count, int timeout_ms);
int __real_select(int count, fd_set *read, fd_set *write, fd_set *except, struct timeval *timeout);
ssize_t __real_read(int fd, void *data, size_t size);
ssize_t __real_readv(int fd, const struct iovec *parts, int count);
ssize_t __real_write(int fd, const void *data, size_t size);
ssize_t __real_writev(int fd, const struct iovec *parts, int count);
int __real_close(int fd);
int __real_fcntl(int fd, int command, ...);
int __real_ioctl(int fd, unsigned long command, ...);
