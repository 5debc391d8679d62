/* SPDX-License-Identifier: Apache-2.0 */
#include "display.h"

#include <stddef.h>
#include <string.h>

#include "font.h"

#define POLYNOMIAL 0xedb88320U

void display_clear(display_t *display) {
    memset(display, 0, sizeof *display);
}

void display_point(display_t *display, int x, int y) {
    if (x >= 0 && x < DISPLAY_WIDTH && y >= 0 && y < DISPLAY_HEIGHT) {
        display->rows[y / 8][x] |= (uint8_t)(1U << (y % 8));
    }
}

void display_line(display_t *display, int x, int top, int bottom) {
    for (int y = top; y <= bottom; y++) {
        display_point(display, x, y);
    }
}

static void draw_glyph(display_t *display, int x, int y, const uint8_t *glyph) {
    for (int column = 0; column < FONT_WIDTH; column++) {
        for (int row = 0; row < FONT_HEIGHT; row++) {
            if ((glyph[column] >> row & 1) != 0) {
                display_point(display, x + column, y + row);
            }
        }
    }
}

void display_text(display_t *display, int x, int y, const char *text) {
    for (; *text != '\0'; text++, x += FONT_WIDTH + 1) {
        draw_glyph(display, x, y, font_glyph(*text));
    }
}

uint32_t display_crc(const display_t *display) {
    const uint8_t *bytes = &display->rows[0][0];
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < sizeof display->rows; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) {
            crc = crc >> 1 ^ ((crc & 1) != 0 ? POLYNOMIAL : 0);
        }
    }
    return ~crc;
}
