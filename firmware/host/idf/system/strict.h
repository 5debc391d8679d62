/* SPDX-License-Identifier: Apache-2.0 */
/* What a chip would not let pass: in strict mode it fails here too, else it is said on the console once. */
#pragma once

#include <stdbool.h>

typedef enum {
    STRICT_HEAP,
    STRICT_LONG_CRITICAL,
    STRICT_IDLE,
    STRICT_LIBC_LOCK,
    STRICT_HEAP_IN_INTERRUPT,
    STRICT_FLOAT_IN_INTERRUPT,
} strict_kind_t;

/* Whether the caller is to fail. Where it is not, the first of this kind at this place (an address, a task)
 * is one line of the console, in one write, with no lock and no memory of the heap: from anywhere. */
bool strict_is_violated(strict_kind_t kind, const void *place, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* One line to the console, as above, whatever the mode. */
void strict_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* An interrupt, or a critical section: whoever would take a lock of libc's has no way to wait for it. */
bool strict_cannot_wait(void);
/* For what the host does at its first need and a chip at its start: no violation of the caller's. */
void strict_excuse(bool excused);
/* An interrupt. */
bool strict_in_interrupt(void);
/* For a line: an address as addr2line takes it, from the program's beginning; and the calling task's name. */
unsigned long strict_offset(const void *place);
const char *strict_task_name(void);
