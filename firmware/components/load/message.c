/* SPDX-License-Identifier: Apache-2.0 */
#include "load/message.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { DIGITS_END = 1000000 };

void load_message_write(char *text, size_t length, uint32_t number, uint32_t run, uint32_t planned_us) {
    int used =
        snprintf(text, length, "{\"n\":%" PRIu32 ",\"run\":%" PRIu32 ",\"planned_us\":%" PRIu32 ",\"pad\":\"",
                 number, run, planned_us);
    memset(text + used, 'x', length - (size_t)used - 2);
    memcpy(text + length - 2, "\"}", 2);
}

uint32_t load_message_number(const char *text, size_t length, uint32_t run) {
    char start[64];
    size_t taken = length < sizeof(start) - 1 ? length : sizeof(start) - 1;
    uint32_t number = 0, its_run = 0;
    memcpy(start, text, taken);
    start[taken] = '\0';
    int found = sscanf(start, "{\"n\":%" SCNu32 ",\"run\":%" SCNu32, &number, &its_run);
    return found == 2 && its_run == run ? number : LOAD_NO_NUMBER;
}

void load_digits_write(char *text, size_t length, uint32_t number, uint32_t run, uint32_t planned_us) {
    (void)length;
    (void)run;
    (void)planned_us;
    number %= DIGITS_END;
    for (int i = LOAD_DIGITS - 1; i >= 0; i--, number /= 10) {
        text[i] = (char)('0' + number % 10);
    }
}

uint32_t load_digits_number(const char *text, size_t length, uint32_t run) {
    uint32_t number = 0;
    (void)run;
    if (length < LOAD_DIGITS) {
        return LOAD_NO_NUMBER;
    }
    for (int i = 0; i < LOAD_DIGITS; i++) {
        if (text[i] < '0' || text[i] > '9') {
            return LOAD_NO_NUMBER;
        }
        number = number * 10 + (uint32_t)(text[i] - '0');
    }
    return number;
}
