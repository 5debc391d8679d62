/* SPDX-License-Identifier: Apache-2.0 */
#include "strict.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../kernel/kernel.h"
#include "esp_log.h"
#include "vboard.h"

#define MAX_SAID 64 /* more than these are not said */
#define KINDS_SHIFT 56

extern char __executable_start;

static __thread bool s_excused;
static uint64_t s_said[MAX_SAID]; /* kind and place, 0 where free */

/* True for the first caller of this kind and place. */
static bool is_news(strict_kind_t kind, const void *place) {
    uint64_t key = ((uint64_t)kind + 1) << KINDS_SHIFT | (uint64_t)(uintptr_t)place;
    for (int i = 0; i < MAX_SAID; i++) {
        uint64_t found = 0;
        if (__atomic_compare_exchange_n(&s_said[i], &found, key, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            return true;
        }
        if (found == key) {
            return false;
        }
    }
    return false;
}

__attribute__((format(printf, 1, 0))) static void write_line(const char *format, va_list arguments) {
    char text[256];
    int used = snprintf(text, sizeof text, "W (%" PRIu32 ") vboard: ", esp_log_timestamp());
    int more = vsnprintf(text + used, sizeof text - (size_t)used - 1, format, arguments);
    used += more < (int)sizeof text - used - 2 ? more : (int)sizeof text - used - 2;
    text[used++] = '\n';
    (void)syscall(SYS_write, STDOUT_FILENO, text, (size_t)used); /* write() is lwIP's */
}

void strict_say(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    write_line(format, arguments);
    va_end(arguments);
}

bool strict_is_violated(strict_kind_t kind, const void *place, const char *format, ...) {
    if (kind == STRICT_HEAP ? vboard()->strict_heap : vboard()->strict) {
        return true;
    }
    if (is_news(kind, place)) {
        va_list arguments;
        va_start(arguments, format);
        write_line(format, arguments);
        va_end(arguments);
    }
    return false;
}

void strict_excuse(bool excused) {
    s_excused = excused;
}

bool strict_in_interrupt(void) {
    const task_t *self = kernel_known_self();
    return self != NULL && self->isr && !s_excused;
}

bool strict_cannot_wait(void) {
    const task_t *self = kernel_known_self();
    return self != NULL && (self->isr || self->masked > 0) && !s_excused;
}

const char *strict_task_name(void) {
    const task_t *self = kernel_known_self();
    return self != NULL ? self->name : "main";
}

unsigned long strict_offset(const void *place) {
    return (unsigned long)((uintptr_t)place - (uintptr_t)&__executable_start);
}
