/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "wire.h"

__attribute__((format(printf, 2, 3))) static void append(wire_line_t *line, const char *format, ...) {
    va_list args;
    va_start(args, format);
    size_t room = line->size - line->length;
    int wanted = vsnprintf(line->text + line->length, room, format, args);
    va_end(args);
    if (wanted < 0 || (size_t)wanted >= room) {
        line->overflow = true;
        line->text[line->length] = '\0';
        return;
    }
    line->length += (size_t)wanted;
}

void wire_line_start(wire_line_t *line, char *buffer, size_t size, uint32_t number, char kind) {
    *line = (wire_line_t){.text = buffer, .size = size};
    append(line, "@hil %d %" PRIu32 " %c", WIRE_PROTOCOL_MAX, number, kind);
}

void wire_line_word(wire_line_t *line, const char *word) {
    append(line, " %s", word);
}

void wire_line_number(wire_line_t *line, uint32_t number) {
    append(line, " %" PRIu32, number);
}

void wire_line_key(wire_line_t *line, const char *key) {
    append(line, " %s=", key);
}

void wire_line_escaped(wire_line_t *line, const char *text) {
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        bool plain = c > 0x20 && c < 0x7f && strchr("%*@#", c) == NULL;
        append(line, plain ? "%c" : "%%%02X", c);
    }
}

void wire_line_text(wire_line_t *line, const char *key, const char *value) {
    wire_line_key(line, key);
    wire_line_escaped(line, value);
}

void wire_line_int(wire_line_t *line, const char *key, int64_t value) {
    append(line, " %s=%" PRId64, key, value);
}

void wire_line_crc(wire_line_t *line, const char *key, uint32_t crc) {
    append(line, " %s=%08" PRIx32, key, crc);
}

void wire_line_hex(wire_line_t *line, const char *key, const uint8_t *data, size_t length) {
    wire_line_key(line, key);
    for (size_t i = 0; i < length; i++) {
        append(line, "%02x", data[i]);
    }
}

void wire_line_base64(wire_line_t *line, const uint8_t *data, size_t length) {
    append(line, " ");
    if (wire_base64_size(length) > line->size - line->length) {
        line->overflow = true;
        return;
    }
    line->length += wire_base64_encode(data, length, line->text + line->length);
}

bool wire_line_finish(wire_line_t *line) {
    append(line, " *%08" PRIx32 "\n", wire_crc32(0, line->text, line->length));
    if (line->overflow) {
        line->length = 0;
    }
    return !line->overflow;
}
