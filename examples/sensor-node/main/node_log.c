/* SPDX-License-Identifier: Apache-2.0 */
#include "node_log.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "esp_timer.h"

#define TEXT_BYTES 160

void node_log(const char *who, const char *format, ...) {
    char text[TEXT_BYTES];
    int64_t now_ms = esp_timer_get_time() / 1000;
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    /* One call a line, so that those of two tasks do not mix. */
    printf("[%4" PRId64 ".%03d] %-5s %s\n", now_ms / 1000, (int)(now_ms % 1000), who, text);
}
