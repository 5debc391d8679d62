/* SPDX-License-Identifier: Apache-2.0 */
#include "pump.h"

enum { PISTONS = 3 };

uint32_t pump_turn(void) {
    static volatile uint32_t s_moves;
    uint32_t before = s_moves;
    for (int piston = 0; piston < PISTONS; piston++) {
        s_moves = s_moves + 1;
    }
    return s_moves - before;
}
