/* SPDX-License-Identifier: Apache-2.0 */
#include "../port.h"

/* lwIP has no SO_SNDBUF. With CONFIG_LWIP_SO_RCVBUF it stores any SO_RCVBUF and reads it back, but only UDP's
 * and raw sockets' buffers keep to it: a window is CONFIG_LWIP_TCP_WND_DEFAULT. */
bool iperf_port_has_tcp_windows(void) {
    return false;
}
