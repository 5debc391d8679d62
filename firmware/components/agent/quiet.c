/* SPDX-License-Identifier: Apache-2.0 */
#include "quiet.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "esp_log.h"
#include "port/port.h"

enum { HELD_SIZE = 2048, LINE_SIZE = 160 };

static char *s_held; /* from the first run on, and for good: a task may be writing when a run ends */
static atomic_size_t s_length;  /* bytes asked for, which may be more than there are */
static atomic_size_t s_refused; /* of them, those that did not fit */
static atomic_size_t s_dropped; /* since boot */
static vprintf_like_t s_previous;
static bool s_is_held;

/* Takes no lock: the task that logs may be the one that is measured. */
static int hold(const char *format, va_list args) {
    char line[LINE_SIZE];
    int wanted = vsnprintf(line, sizeof(line), format, args);
    if (wanted <= 0) {
        return wanted;
    }
    size_t length = (size_t)wanted < sizeof(line) ? (size_t)wanted : sizeof(line) - 1;
    size_t at = atomic_fetch_add(&s_length, length);
    if (at + length <= HELD_SIZE) {
        memcpy(s_held + at, line, length);
    } else {
        atomic_fetch_add(&s_refused, length);
    }
    return wanted;
}

void quiet_begin(void) {
    if (!agent_config()->hold_log) {
        return;
    }
    if (s_held == NULL) {
        s_held = malloc(HELD_SIZE);
    }
    if (s_held == NULL) {
        return;
    }
    memset(s_held, 0, HELD_SIZE);
    atomic_store(&s_length, 0);
    atomic_store(&s_refused, 0);
    s_previous = esp_log_set_vprintf(hold);
    s_is_held = true;
}

/* What follows a line that its task has not finished writing is lost, as is what did not fit. */
static void count_dropped(size_t held, size_t printed) {
    size_t refused = atomic_load(&s_refused);
    size_t unfinished = held > refused + printed ? held - refused - printed : 0;
    atomic_fetch_add(&s_dropped, refused + unfinished);
}

void quiet_end(void) {
    if (!s_is_held) {
        return;
    }
    s_is_held = false;
    esp_log_set_vprintf(s_previous);
    size_t held = atomic_load(&s_length);
    size_t length = strnlen(s_held, held < HELD_SIZE ? held : HELD_SIZE);
    count_dropped(held, length);
    port_console_write(s_held, length);
    if (length > 0 && s_held[length - 1] != '\n') { /* the last line was cut: the next one is a record */
        port_console_write("\n", 1);
    }
}

size_t quiet_dropped_bytes(void) {
    return atomic_load(&s_dropped);
}
