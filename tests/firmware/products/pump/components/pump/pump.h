/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/* Turn the pump once; returns how often its piston moved. */
uint32_t pump_turn(void);
