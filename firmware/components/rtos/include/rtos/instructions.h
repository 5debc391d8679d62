/* SPDX-License-Identifier: Apache-2.0 */
/* The clock `instructions`: how many instructions the core has executed.
 *
 * RISC-V counts them (minstret). In QEMU with -icount every boot of the same image counts the same; there the
 * counter may step by more than 1 an instruction (nanoseconds of its virtual time), so a loop of known length
 * tells by how much. Xtensa has no such counter, nor has a host.
 */
#pragma once

#include <stdint.h>

#include "agent/bench.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Look whether the counter is there and counts instructions, and fill in how many steps it has for one. Call
 * it from run()'s own task, after bench_samples_begin(). Tells instruction_ticks in the environment of the
 * burst being filled.
 *
 * Returns ESP_ERR_NOT_SUPPORTED, with bench_fail() told (configuration), on a board that does not count them.
 */
esp_err_t rtos_instructions_calibrate(uint32_t *ticks, bench_samples_t *samples);

/* The counter, in steps; only after rtos_instructions_calibrate(). Always as many instructions itself. */
uint64_t rtos_instructions_read(void);

/* A loop that counts its rounds, each of RTOS_SPIN_INSTRUCTIONS, until it is stopped. A task of the lowest
 * priority that spins keeps the core from sleeping, and tells how long nobody else had anything to do. */
enum { RTOS_SPIN_INSTRUCTIONS = 5 };

typedef struct {
    volatile uint32_t rounds;
    volatile uint32_t stop;
} rtos_spin_t;

void rtos_instructions_spin(rtos_spin_t *spin);

#ifdef __cplusplus
}
#endif
