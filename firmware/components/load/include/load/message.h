/* SPDX-License-Identifier: Apache-2.0 */
/* A row as a message, which names it by its number in the run. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    LOAD_MESSAGE_MIN_BYTES = 80, /* the JSON without padding, with the longest numbers */
    LOAD_MESSAGE_MAX_BYTES = 8192,
    LOAD_DIGITS = 6,
};

#define LOAD_NO_NUMBER UINT32_MAX

/* Writes exactly `length` bytes, no NUL. `number` counts from 0 over all bursts, `run` tells this run's
 * messages from another's. */
typedef void (*load_message_writer_t)(char *text, size_t length, uint32_t number, uint32_t run,
                                      uint32_t planned_us);
/* Number of a message that starts so; LOAD_NO_NUMBER for one of another run, or not of this kind. */
typedef uint32_t (*load_message_reader_t)(const char *text, size_t length, uint32_t run);

/* JSON with number, run and plan, padded to the length. */
void load_message_write(char *text, size_t length, uint32_t number, uint32_t run, uint32_t planned_us);
uint32_t load_message_number(const char *text, size_t length, uint32_t run);

/* LOAD_DIGITS decimal digits of the number, the rest is left as it is: for messages of any length. They name
 * no run. */
void load_digits_write(char *text, size_t length, uint32_t number, uint32_t run, uint32_t planned_us);
uint32_t load_digits_number(const char *text, size_t length, uint32_t run);

#ifdef __cplusplus
}
#endif
