/* SPDX-License-Identifier: Apache-2.0 */
// The send buffer of a TCP socket: bytes written and not acknowledged.
#pragma once

#include "sock.h"

// lwIP counts it in 16 bits without window scaling.
#define LWIP_SEND_BUFFER_MIN_BYTES 536
#define LWIP_SEND_BUFFER_MAX_BYTES 65535

int lwip_send_buffer_open(int fd);
// lwIP's select would not call it writable: no more than TCP_SNDLOWAT bytes are free. An error is writable.
bool lwip_send_buffer_is_full(int fd, const lwip_sock_t *sock);
// As lwip_send.
ssize_t lwip_send_buffer_write(int fd, const lwip_sock_t *sock, const char *data, size_t size, int flags);
// How long to wait before looking at full buffers again.
extern const struct timespec LWIP_SEND_BUFFER_PAUSE;
