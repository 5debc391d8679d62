/* SPDX-License-Identifier: Apache-2.0 */
/* Here, and on the linux target: x86 frames, glibc, OpenSSL. */
#include "port/port.h"

const char *port_memory_prefix(void) {
    return "host_";
}
