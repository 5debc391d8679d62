/* SPDX-License-Identifier: Apache-2.0 */
/* What the firmware prints by (ld --wrap): newlib's streams have a lock, which aborts where it cannot be
 * waited for, in an interrupt and in a critical section. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "strict.h"

static void check(const char *function, const void *place) {
    if (strict_cannot_wait() &&
        strict_is_violated(
            STRICT_LIBC_LOCK, place,
            "%s() in an interrupt or a critical section (at 0x%lx, task %s): a chip aborts at its lock",
            function, strict_offset(place), strict_task_name())) {
        strict_say(
            "%s() in an interrupt or a critical section (at 0x%lx, task %s): its lock cannot be waited for",
            function, strict_offset(place), strict_task_name());
        abort();
    }
}

#define CHECK() check(__func__ + sizeof "__wrap_" - 1, __builtin_return_address(0))

int __wrap_vfprintf(FILE *stream, const char *format, va_list arguments);
int __wrap_vprintf(const char *format, va_list arguments);
int __wrap_printf(const char *format, ...);
int __wrap_fprintf(FILE *stream, const char *format, ...);
int __wrap_puts(const char *text);
int __wrap_fputs(const char *text, FILE *stream);
int __wrap_putchar(int character);
int __wrap_fputc(int character, FILE *stream);
int __wrap_putc(int character, FILE *stream);
size_t __wrap_fwrite(const void *items, size_t size, size_t count, FILE *stream);
int __real_vfprintf(FILE *stream, const char *format, va_list arguments);
int __real_puts(const char *text);
int __real_fputs(const char *text, FILE *stream);
int __real_fputc(int character, FILE *stream);
size_t __real_fwrite(const void *items, size_t size, size_t count, FILE *stream);

int __wrap_vfprintf(FILE *stream, const char *format, va_list arguments) {
    CHECK();
    return __real_vfprintf(stream, format, arguments);
}

int __wrap_vprintf(const char *format, va_list arguments) {
    CHECK();
    return __real_vfprintf(stdout, format, arguments);
}

int __wrap_printf(const char *format, ...) {
    CHECK();
    va_list arguments;
    va_start(arguments, format);
    int length = __real_vfprintf(stdout, format, arguments);
    va_end(arguments);
    return length;
}

int __wrap_fprintf(FILE *stream, const char *format, ...) {
    CHECK();
    va_list arguments;
    va_start(arguments, format);
    int length = __real_vfprintf(stream, format, arguments);
    va_end(arguments);
    return length;
}

int __wrap_puts(const char *text) {
    CHECK();
    return __real_puts(text);
}

int __wrap_fputs(const char *text, FILE *stream) {
    CHECK();
    return __real_fputs(text, stream);
}

int __wrap_putchar(int character) {
    CHECK();
    return __real_fputc(character, stdout);
}

int __wrap_fputc(int character, FILE *stream) {
    CHECK();
    return __real_fputc(character, stream);
}

int __wrap_putc(int character, FILE *stream) {
    CHECK();
    return __real_fputc(character, stream);
}

size_t __wrap_fwrite(const void *items, size_t size, size_t count, FILE *stream) {
    CHECK();
    return __real_fwrite(items, size, count, stream);
}
