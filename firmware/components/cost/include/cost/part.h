/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of what a message costs the processor.
 *
 * What is on the other end of a connection runs on the same chip and is reached over lwIP's loopback, at a
 * lower priority: it works once what is measured waits or is over.
 */
#pragma once

#include <stdint.h>

#include "agent/bench.h"
#include "rtos/instructions.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    COST_MAX_PAYLOAD_BYTES = 1024,
    COST_TIMEOUT_MS = 2000,
    COST_PEER_PRIORITY = AGENT_RUN_PRIORITY - 1,
};

/* A moment: what the counter says, and how often the background went round until then. */
typedef struct {
    uint64_t steps;
    uint32_t rounds;
} cost_moment_t;

typedef struct cost_background cost_background_t;

typedef struct {
    const bench_run_t *run;
    bench_samples_t *samples;
    size_t payload_bytes;
    char payload[COST_MAX_PAYLOAD_BYTES];
    uint32_t ticks;           /* steps of the counter an instruction */
    uint32_t mark;            /* instructions that two marks in a row show */
    uint32_t number;          /* of the repetition, from 0 */
    cost_moment_t begin, end; /* of the last one */
    cost_background_t *background;
    void *own; /* the part's */
} cost_t;

typedef struct {
    /* What all repetitions need; close() comes afterwards all the same. May be NULL. */
    esp_err_t (*open)(cost_t *cost);
    /* Once. False where what it waits for has not happened within COST_TIMEOUT_MS. */
    bool (*repeat)(cost_t *cost);
    void (*close)(cost_t *cost); /* may be NULL */
    bool once_a_boot;            /* nothing can be repeated */
} cost_part_t;

extern const char *const cost_part_names[]; /* ends with NULL */

/* Now. Always as many instructions itself. From any task. */
void cost_mark(cost_moment_t *moment);

/* Instructions of the last repetition, without those of the marks and of the background. */
uint32_t cost_instructions(const cost_t *cost);

/* The background spins below all others while a repetition lasts: a core that sleeps would go on counting in
 * QEMU 8, whose counter is its virtual time. Fills in ticks and mark too. Returns ESP_OK, or what
 * bench_fail() was told. */
esp_err_t cost_background_start(cost_t *cost);
void cost_background_stop(cost_t *cost);
/* Between repetitions it is still, for the idle task has work of its own. */
void cost_background_resume(const cost_t *cost);
void cost_background_suspend(const cost_t *cost);

/* In the order of the names. */
const cost_part_t *cost_part(int64_t index);

#ifdef __cplusplus
}
#endif
