/* SPDX-License-Identifier: Apache-2.0 */
/* Getting memory, giving it back and working on it: the operations that the bench `memory` times.
 *
 * A round has a slot for each operation with each size: first those on the heap as it is, then those on a
 * heap with holes, then work on blocks.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "rtos/round.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Numbers stay as they are: hosts know them. */
typedef enum {
    RTOS_MEMORY_MALLOC,
    RTOS_MEMORY_FREE,
    RTOS_MEMORY_REALLOC, /* to twice the size */
    RTOS_MEMORY_MALLOC_IN_HOLES,
    RTOS_MEMORY_FREE_IN_HOLES,
    RTOS_MEMORY_SET,
    RTOS_MEMORY_COPY,
    RTOS_MEMORY_MOVE,        /* by one word, within a block */
    RTOS_MEMORY_RANDOM_READ, /* RTOS_MEMORY_READS words of a block, whose size is a power of 2 */
} rtos_memory_operation_t;

enum {
    RTOS_MEMORY_READS = 1024,
    RTOS_MEMORY_HEAP_SIZES = 6,
    RTOS_MEMORY_WORK_SIZES = 4,
    RTOS_MEMORY_FIRST_IN_HOLES = 3 * RTOS_MEMORY_HEAP_SIZES,
    RTOS_MEMORY_FIRST_WORK = RTOS_MEMORY_FIRST_IN_HOLES + 2 * RTOS_MEMORY_HEAP_SIZES,
    RTOS_MEMORY_SLOTS = RTOS_MEMORY_FIRST_WORK + 4 * RTOS_MEMORY_WORK_SIZES,
    RTOS_MEMORY_HOLE_BLOCKS = 64,
};

/* Blocks of many sizes, every other one given back. */
typedef struct {
    void *blocks[RTOS_MEMORY_HOLE_BLOCKS];
} rtos_memory_holes_t;

rtos_memory_operation_t rtos_memory_operation(size_t slot);
uint32_t rtos_memory_size(size_t slot);

/* Time it once, with memory of these capabilities. Not done where there is no memory for it. */
rtos_round_t rtos_memory_time(size_t slot, uint32_t caps);

/* 64 blocks of 16 to 527 bytes, 17 KiB in all; the same `random` gives the same. What there is no memory for
 * is left out. */
void rtos_memory_make_holes(rtos_memory_holes_t *holes, uint32_t caps, uint32_t *random);
void rtos_memory_close_holes(rtos_memory_holes_t *holes);

#ifdef __cplusplus
}
#endif
