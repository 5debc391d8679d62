#include "port/port.h"

const char *port_memory_prefix(void) {
    return "";
}
