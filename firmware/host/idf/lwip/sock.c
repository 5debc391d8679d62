/* SPDX-License-Identifier: Apache-2.0 */
// The descriptors of this layer: the kernel's numbers, CONFIG_LWIP_MAX_SOCKETS of them at a time.
#include "sock.h"

#include <errno.h>
#include <time.h>

static lwip_sock_t s_socks[FD_SETSIZE];
static atomic_int s_open;

lwip_sock_t *lwip_sock_find(int fd) {
    return fd >= 0 && fd < FD_SETSIZE && s_socks[fd].type != 0 ? &s_socks[fd] : NULL;
}

lwip_sock_t *lwip_sock_get(int fd) {
    lwip_sock_t *sock = lwip_sock_find(fd);
    if (sock == NULL) {
        errno = EBADF;
    }
    return sock;
}

lwip_sock_t *lwip_sock_add(int fd, int type) {
    if (fd >= FD_SETSIZE || atomic_fetch_add(&s_open, 1) >= CONFIG_LWIP_MAX_SOCKETS) {
        s_open -= fd < FD_SETSIZE;
        errno = ENFILE;
        return NULL;
    }
    lwip_sock_t *sock = &s_socks[fd];
    sock->window_bytes = CONFIG_LWIP_TCP_WND_DEFAULT;
    sock->send_buffer_bytes = CONFIG_LWIP_TCP_SND_BUF_DEFAULT;
    sock->mss_bytes = CONFIG_LWIP_TCP_MSS;
    sock->send_timeout_ms = 0;
    sock->nonblocking = false;
    sock->nodelay = false;
    sock->listening = false;
    sock->window_settled = false;
    sock->taken_bytes = 0;
    sock->type = type;
    return sock;
}

void lwip_sock_remove(int fd) {
    s_socks[fd].type = 0;
    s_open--;
}

bool lwip_sock_is_stream(const lwip_sock_t *sock) {
    return sock->type == SOCK_STREAM;
}

int lwip_option_get(int fd, int level, int option) {
    int value = -1;
    socklen_t size = sizeof(value);
    return __real_getsockopt(fd, level, option, &value, &size) == 0 ? value : -1;
}

int lwip_option_set(int fd, int level, int option, int value) {
    return __real_setsockopt(fd, level, option, &value, sizeof(value));
}

int64_t lwip_now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}
