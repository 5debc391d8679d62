/* SPDX-License-Identifier: Apache-2.0 */
#include "wire.h"

#include <string.h>

static const char BASE64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

uint32_t wire_crc32(uint32_t crc, const void *data, size_t length) {
    /* Four bits at a time: 64 bytes of table, fast enough for 60 KiB between two runs. */
    static const uint32_t table[16] = {
        0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
        0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c, 0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c,
    };
    const uint8_t *bytes = data;
    crc = ~crc;
    for (size_t i = 0; i < length; i++) {
        crc = (crc >> 4) ^ table[(crc ^ bytes[i]) & 15];
        crc = (crc >> 4) ^ table[(crc ^ (uint32_t)(bytes[i] >> 4)) & 15];
    }
    return ~crc;
}

size_t wire_base64_size(size_t length) {
    return (length + 2) / 3 * 4 + 1;
}

size_t wire_base64_encode(const uint8_t *data, size_t length, char *text) {
    char *out = text;
    for (size_t i = 0; i < length; i += 3) {
        size_t rest = length - i;
        uint32_t group = (uint32_t)data[i] << 16;
        group |= rest > 1 ? (uint32_t)data[i + 1] << 8 : 0;
        group |= rest > 2 ? data[i + 2] : 0;
        *out++ = BASE64[group >> 18];
        *out++ = BASE64[(group >> 12) & 63];
        *out++ = rest > 1 ? BASE64[(group >> 6) & 63] : '=';
        *out++ = rest > 2 ? BASE64[group & 63] : '=';
    }
    *out = '\0';
    return (size_t)(out - text);
}

static int base64_digit(char c) {
    const char *at = c == '\0' ? NULL : strchr(BASE64, c);
    return at == NULL ? -1 : (int)(at - BASE64);
}

/* Decode one group of four characters to at most three bytes. Returns their number, or -1. */
static int base64_group(const char *text, bool last, uint8_t out[3]) {
    int padding = 0;
    if (last && text[3] == '=') {
        padding = text[2] == '=' ? 2 : 1;
    }
    uint32_t group = 0;
    for (int i = 0; i < 4; i++) {
        int digit = i >= 4 - padding ? 0 : base64_digit(text[i]);
        if (digit < 0) {
            return -1;
        }
        group = group << 6 | (uint32_t)digit;
    }
    if ((group & ((1U << (8 * padding)) - 1)) != 0) { /* bits that the padding says are not there */
        return -1;
    }
    out[0] = (uint8_t)(group >> 16);
    out[1] = (uint8_t)(group >> 8);
    out[2] = (uint8_t)group;
    return 3 - padding;
}

int wire_base64_decode(const char *text, uint8_t *data, size_t size) {
    size_t length = strlen(text);
    size_t written = 0;
    if (length % 4 != 0) {
        return -1;
    }
    for (size_t i = 0; i < length; i += 4) {
        uint8_t group[3];
        int count = base64_group(text + i, i + 4 == length, group);
        if (count < 0 || written + (size_t)count > size) {
            return -1;
        }
        memcpy(data + written, group, (size_t)count);
        written += (size_t)count;
    }
    return (int)written;
}

uint64_t wire_zigzag(int64_t value) {
    return ((uint64_t)value << 1) ^ (value < 0 ? UINT64_MAX : 0);
}

size_t wire_varint(uint64_t value, uint8_t out[WIRE_VARINT_SIZE]) {
    size_t length = 0;
    while (value > 0x7f) {
        out[length++] = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    out[length++] = (uint8_t)value;
    return length;
}
