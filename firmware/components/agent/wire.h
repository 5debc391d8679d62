/* SPDX-License-Identifier: Apache-2.0 */
/* The console protocol's building blocks: CRC-32, base64, varints, marked lines, command lines.
 *
 * docs/reference/console-protocol.md specifies them. Plain C without an operating system, so that they are
 * tested and fuzzed alone.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WIRE_PROTOCOL_MIN = 1, /* oldest protocol version that this firmware speaks */
    WIRE_PROTOCOL_MAX = 1,
    WIRE_BLOCK_BYTES = 1024,  /* packed bytes of a data line */
    WIRE_LINE_SIZE = 2560,    /* longest marked line, newline and NUL included */
    WIRE_COMMAND_SIZE = 1024, /* longest command line, NUL included */
    WIRE_TAG_SIZE = 24,
    WIRE_VARINT_SIZE = 10,
};

/* CRC-32 as in zlib (reflected polynomial 0xEDB88320); start with 0, feed the result back to go on. */
uint32_t wire_crc32(uint32_t crc, const void *data, size_t length);

/* Base64 (RFC 4648, padded). `text` needs wire_base64_size(length) bytes; it is NUL-terminated. */
size_t wire_base64_size(size_t length);
size_t wire_base64_encode(const uint8_t *data, size_t length, char *text);

/* Strict decoder: padding required, no other characters, no stray bits. Returns the length, or -1. */
int wire_base64_decode(const char *text, uint8_t *data, size_t size);

uint64_t wire_zigzag(int64_t value);
/* LEB128: seven bits a byte, lowest first. Returns the bytes written. */
size_t wire_varint(uint64_t value, uint8_t out[WIRE_VARINT_SIZE]);

/* A marked line under construction. What does not fit sets `overflow`; the line is never cut silently. */
typedef struct {
    char *text;
    size_t size;
    size_t length;
    bool overflow;
} wire_line_t;

void wire_line_start(wire_line_t *line, char *buffer, size_t size, uint32_t number, char kind);
void wire_line_word(wire_line_t *line, const char *word);                   /* ` word` */
void wire_line_number(wire_line_t *line, uint32_t number);                  /* ` 123` */
void wire_line_key(wire_line_t *line, const char *key);                     /* ` key=` */
void wire_line_escaped(wire_line_t *line, const char *text);                /* value text, percent-encoded */
void wire_line_text(wire_line_t *line, const char *key, const char *value); /* ` key=value` */
void wire_line_int(wire_line_t *line, const char *key, int64_t value);      /* ` key=-1` */
void wire_line_crc(wire_line_t *line, const char *key, uint32_t crc);       /* ` key=0badcafe` */
void wire_line_hex(wire_line_t *line, const char *key, const uint8_t *data, size_t length);
void wire_line_base64(wire_line_t *line, const uint8_t *data, size_t length); /* ` QUJD` */
/* Append ` *<crc32>` and a newline. Returns false, and leaves nothing to send, if the line overflowed. */
bool wire_line_finish(wire_line_t *line);

typedef enum {
    WIRE_COMMAND_OK,
    WIRE_COMMAND_EMPTY,    /* nothing on the line */
    WIRE_COMMAND_BAD_CRC,  /* checksum wrong, or missing on a tagged line */
    WIRE_COMMAND_BAD_LINE, /* a character outside printable ASCII, or a malformed tag */
} wire_command_status_t;

typedef struct {
    char tag[WIRE_TAG_SIZE]; /* "-" when there is none */
    char *text;              /* verb and arguments, within the line given */
    uint32_t crc;            /* of the line as sent; with the tag it tells a repetition */
} wire_command_t;

/* Take a command line apart, in place: `[#<tag> ]<verb> <args…>[ *<crc32>]`. */
wire_command_status_t wire_command_parse(char *line, wire_command_t *command);

/* Parse a whole decimal integer. Returns false for anything else, overflow included. */
bool wire_parse_int(const char *text, int64_t *value);
/* Parse exactly eight hexadecimal digits. */
bool wire_parse_crc(const char *text, uint32_t *value);
