/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#define FONT_WIDTH 5
#define FONT_HEIGHT 7

/* Five columns, the lowest bit on top. */
const uint8_t *font_glyph(char character);
