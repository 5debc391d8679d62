#include "load/message.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void load_message_write(char *text, size_t length, uint32_t burst, size_t row, uint32_t planned_us) {
    int used =
        snprintf(text, length, "{\"burst\":%" PRIu32 ",\"row\":%u,\"planned_us\":%" PRIu32 ",\"pad\":\"",
                 burst, (unsigned)row, planned_us);
    memset(text + used, 'x', length - (size_t)used - 2);
    memcpy(text + length - 2, "\"}", 2);
}

uint32_t load_message_row(const char *text, size_t length, uint32_t burst) {
    char start[64];
    size_t taken = length < sizeof(start) - 1 ? length : sizeof(start) - 1;
    uint32_t its_burst = 0, row = 0;
    memcpy(start, text, taken);
    start[taken] = '\0';
    int found = sscanf(start, "{\"burst\":%" SCNu32 ",\"row\":%" SCNu32, &its_burst, &row);
    return found == 2 && its_burst == burst ? row : LOAD_NO_ROW;
}
