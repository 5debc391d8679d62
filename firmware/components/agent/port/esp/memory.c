/* SPDX-License-Identifier: Apache-2.0 */
#include "port/port.h"

const char *port_memory_prefix(void) {
    return "";
}
