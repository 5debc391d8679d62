/* SPDX-License-Identifier: Apache-2.0 */
// The receive window of a TCP socket, held to a number of bytes.
#pragma once

#include "sock.h"

// Linux clamps a window to no less than this: half its smallest receive buffer (SOCK_MIN_RCVBUF, 2304 bytes).
#define LWIP_WINDOW_MIN_BYTES 1152
#define LWIP_WINDOW_MAX_BYTES 65535 // no window scaling, as CONFIG_LWIP_WND_SCALE=n

// 0, or -1 with errno.
int lwip_window_open(int fd, lwip_sock_t *sock);   // before connect: the SYN announces the window
int lwip_window_listen(int fd, lwip_sock_t *sock); // for the connections to come
void lwip_window_connected(int fd, lwip_sock_t *sock);
int lwip_window_change(int fd, lwip_sock_t *sock); // on a connection: as the peer uses up the old one
// After each read: keeps the window, and tells the peer of it when lwIP would.
void lwip_window_read(int fd, lwip_sock_t *sock, ssize_t bytes);
