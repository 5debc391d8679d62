/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wire.h"

bool wire_parse_crc(const char *text, uint32_t *value) {
    for (int i = 0; i < 8; i++) {
        if (!isxdigit((unsigned char)text[i])) {
            return false;
        }
    }
    *value = (uint32_t)strtoul(text, NULL, 16);
    return text[8] == '\0';
}

bool wire_parse_int(const char *text, int64_t *value) {
    const char *digits = *text == '-' ? text + 1 : text;
    if (!isdigit((unsigned char)*digits)) { /* strtoll would take blanks and a plus sign */
        return false;
    }
    char *end = NULL;
    errno = 0;
    *value = strtoll(text, &end, 10);
    return errno == 0 && *end == '\0';
}

/* Remove a trailing ` *<crc32>`. Returns false if there is one and it is wrong. */
static bool take_crc(char *line, bool *present, uint32_t *crc) {
    char *star = strrchr(line, '*');
    size_t length = strlen(line);
    *present = star != NULL && star > line && star[-1] == ' ' && strchr(star, ' ') == NULL;
    if (*present) {
        length = (size_t)(star - 1 - line);
    }
    *crc = wire_crc32(0, line, length);
    uint32_t given = 0;
    if (*present && (!wire_parse_crc(star + 1, &given) || given != *crc)) {
        return false;
    }
    line[length] = '\0';
    return true;
}

static bool take_tag(char *line, wire_command_t *command) {
    size_t length = strcspn(line + 1, " ");
    bool sized = length > 0 && length < sizeof(command->tag) && line[1 + length] == ' ';
    for (size_t i = 1; sized && i <= length; i++) {
        sized = isalnum((unsigned char)line[i]) || line[i] == '-' || line[i] == '.';
    }
    if (!sized || strncmp(line + 1, "- ", 2) == 0) { /* "-" stands for no tag in a reply */
        return false;
    }
    memcpy(command->tag, line + 1, length);
    command->tag[length] = '\0';
    command->text = line + length + 2;
    return true;
}

static bool printable(const char *line) {
    while (*line >= 0x20 && *line < 0x7f) {
        line++;
    }
    return *line == '\0';
}

wire_command_status_t wire_command_parse(char *line, wire_command_t *command) {
    bool has_crc = false;
    *command = (wire_command_t){.tag = "-", .text = line};
    if (line[strspn(line, " ")] == '\0') {
        return WIRE_COMMAND_EMPTY;
    }
    if (!printable(line)) {
        return WIRE_COMMAND_BAD_LINE;
    }
    if (!take_crc(line, &has_crc, &command->crc) || (line[0] == '#' && !has_crc)) {
        return WIRE_COMMAND_BAD_CRC;
    }
    if (line[0] == '#' && !take_tag(line, command)) {
        return WIRE_COMMAND_BAD_LINE;
    }
    return command->text[strspn(command->text, " ")] == '\0' ? WIRE_COMMAND_EMPTY : WIRE_COMMAND_OK;
}
