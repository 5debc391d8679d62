/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes as hexadecimal digits, as they were recorded. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "expect.h"

static inline size_t from_hex(uint8_t *out, const char *text) {
    size_t count = 0;
    for (; text[0] != '\0' && text[1] != '\0'; text += 2) {
        unsigned value = 0;
        sscanf(text, "%2x", &value);
        out[count++] = (uint8_t)value;
    }
    return count;
}

static inline bool equals_hex(const uint8_t *bytes, size_t length, const char *text) {
    uint8_t wanted[512];
    return from_hex(wanted, text) == length && memcmp(bytes, wanted, length) == 0;
}
