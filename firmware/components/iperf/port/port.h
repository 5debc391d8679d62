/* SPDX-License-Identifier: Apache-2.0 */
/* What differs between sockets whose TCP windows the build fixes (port/built: chips, and ESP-IDF's linux
 * target) and the host build's (port/host). */
#pragma once

#include <stdbool.h>

/* Whether SO_SNDBUF and SO_RCVBUF set a TCP connection's send buffer and receive window. */
bool iperf_port_has_tcp_windows(void);
