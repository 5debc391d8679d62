/* SPDX-License-Identifier: Apache-2.0 */
/* Spells in which a host was late, in the order of time. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { SPELLS_KEPT = 4096 };

/* From when something should have happened until it did. */
typedef struct {
    int64_t from_us;
    int64_t until_us;
} spell_t;

typedef struct {
    struct {
        spell_t spell;
        uint32_t late_us;
    } kept[SPELLS_KEPT];
    size_t count;
    uint32_t seen;
} spells_t;

void spells_clear(spells_t *spells);

/* Each begins after the one before has ended. One that does not fit any more lengthens the last one, which
 * then says of all that it covers, also of what was in time, what was worst. */
void spells_note(spells_t *spells, spell_t spell);

/* The longest that overlaps [from_us, until_us], 0 where none does. */
uint32_t spells_worst_us(const spells_t *spells, int64_t from_us, int64_t until_us);
