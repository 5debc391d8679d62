/* A row as a message: JSON that names burst, row and plan, padded to a length. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    LOAD_MESSAGE_MIN_BYTES = 80, /* the JSON without padding, with the longest numbers */
    LOAD_MESSAGE_MAX_BYTES = 8192,
};

#define LOAD_NO_ROW UINT32_MAX

/* Write exactly `length` bytes, no NUL. */
void load_message_write(char *text, size_t length, uint32_t burst, size_t row, uint32_t planned_us);

/* Row of a message that starts so; LOAD_NO_ROW for one of another burst, or not of this kind. */
uint32_t load_message_row(const char *text, size_t length, uint32_t burst);

#ifdef __cplusplus
}
#endif
