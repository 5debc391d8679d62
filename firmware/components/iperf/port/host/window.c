/* SPDX-License-Identifier: Apache-2.0 */
#include "../port.h"

bool iperf_port_has_tcp_windows(void) {
    return true;
}
