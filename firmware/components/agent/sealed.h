/* SPDX-License-Identifier: Apache-2.0 */
/* A sealed run: the board carries out a script that it finds in its flash, without a word from outside.
 *
 * docs/reference/sealed-runs.md has the script's format.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Look for a script and read it. Call it before identity_init(). */
void sealed_init(void);

/* Whether this boot is sealed. */
bool sealed(void);

/* What a sealed boot takes in place of a random number: the same script gives the same. */
uint32_t sealed_seed(void);

/* Carry the script out, line by line, and say how it went; say so where it is damaged. Nothing without one.
 */
void sealed_carry_out(void);
