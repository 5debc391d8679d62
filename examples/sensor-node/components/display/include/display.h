/* SPDX-License-Identifier: Apache-2.0 */
/* A display of 128 x 64 points, one bit each, laid out as an SSD1306 wants it: a byte is eight points of a
 * column, the lowest bit on top; 128 bytes are a row of eight points. */
#pragma once

#include <stdint.h>

#define DISPLAY_WIDTH 128
#define DISPLAY_HEIGHT 64

typedef struct {
    uint8_t rows[DISPLAY_HEIGHT / 8][DISPLAY_WIDTH];
} display_t;

void display_clear(display_t *display);
/* Outside the display nothing is drawn. */
void display_point(display_t *display, int x, int y);
/* A vertical line from top to bottom, both included. */
void display_line(display_t *display, int x, int top, int bottom);
/* Capitals, digits and some signs, 5 x 7 points and one between; other characters are a blank. */
void display_text(display_t *display, int x, int y, const char *text);
/* CRC-32 (IEEE 802.3) of all points. */
uint32_t display_crc(const display_t *display);
