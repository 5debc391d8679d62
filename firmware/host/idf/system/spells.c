/* SPDX-License-Identifier: Apache-2.0 */
#include "spells.h"

void spells_clear(spells_t *spells) {
    spells->count = 0;
    spells->seen = 0;
}

static uint32_t length_us(spell_t spell) {
    int64_t us = spell.until_us - spell.from_us;
    return us < UINT32_MAX ? (uint32_t)us : UINT32_MAX;
}

void spells_note(spells_t *spells, spell_t spell) {
    spells->seen++;
    uint32_t late_us = length_us(spell);
    size_t count = spells->count;
    if (count < SPELLS_KEPT) {
        spells->kept[count] = (typeof(spells->kept[0])){.spell = spell, .late_us = late_us};
        __atomic_store_n(&spells->count, count + 1, __ATOMIC_RELEASE); /* whoever reads meanwhile */
        return;
    }
    size_t last = SPELLS_KEPT - 1;
    spells->kept[last].spell.until_us = spell.until_us;
    if (late_us > spells->kept[last].late_us) {
        spells->kept[last].late_us = late_us;
    }
}

static size_t first_not_over_at(const spells_t *spells, int64_t from_us) {
    size_t low = 0;
    size_t high = __atomic_load_n(&spells->count, __ATOMIC_ACQUIRE);
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (spells->kept[middle].spell.until_us < from_us) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

uint32_t spells_worst_us(const spells_t *spells, int64_t from_us, int64_t until_us) {
    uint32_t worst_us = 0;
    size_t count = __atomic_load_n(&spells->count, __ATOMIC_ACQUIRE);
    for (size_t i = first_not_over_at(spells, from_us);
         i < count && spells->kept[i].spell.from_us <= until_us; i++) {
        worst_us = spells->kept[i].late_us > worst_us ? spells->kept[i].late_us : worst_us;
    }
    return worst_us;
}
