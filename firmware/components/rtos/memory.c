/* SPDX-License-Identifier: Apache-2.0 */
#include "rtos/memory.h"

#include <stdatomic.h>
#include <string.h>

#include "esp_heap_caps.h"
#include "load/plan.h"

enum { HOLE_BLOCK_MIN_BYTES = 16, HOLE_BLOCK_BYTES = 512 /* more, at most */ };

static const uint32_t HEAP_BYTES[RTOS_MEMORY_HEAP_SIZES] = {16, 64, 256, 1024, 4096, 16384};
static const uint32_t WORK_BYTES[RTOS_MEMORY_WORK_SIZES] = {1024, 4096, 16384, 32768};

static volatile uint32_t s_sum; /* what is read has to end up somewhere */

rtos_memory_operation_t rtos_memory_operation(size_t slot) {
    if (slot < RTOS_MEMORY_FIRST_IN_HOLES) {
        return (rtos_memory_operation_t)(RTOS_MEMORY_MALLOC + slot % 3);
    }
    if (slot < RTOS_MEMORY_FIRST_WORK) {
        return (rtos_memory_operation_t)(RTOS_MEMORY_MALLOC_IN_HOLES +
                                         (slot - RTOS_MEMORY_FIRST_IN_HOLES) % 2);
    }
    return (rtos_memory_operation_t)(RTOS_MEMORY_SET + (slot - RTOS_MEMORY_FIRST_WORK) % 4);
}

uint32_t rtos_memory_size(size_t slot) {
    if (slot < RTOS_MEMORY_FIRST_IN_HOLES) {
        return HEAP_BYTES[slot / 3];
    }
    return slot < RTOS_MEMORY_FIRST_WORK ? HEAP_BYTES[(slot - RTOS_MEMORY_FIRST_IN_HOLES) / 2]
                                         : WORK_BYTES[(slot - RTOS_MEMORY_FIRST_WORK) / 4];
}

/* The compiler keeps what is between two of these there. */
static void begin(rtos_round_t *round) {
    round->begin = rtos_stamp_begin();
    atomic_signal_fence(memory_order_seq_cst);
}

static void end(rtos_round_t *round) {
    atomic_signal_fence(memory_order_seq_cst);
    round->end = rtos_stamp_end();
}

static void time_malloc(uint32_t caps, uint32_t size, rtos_round_t *round) {
    begin(round);
    void *block = heap_caps_malloc(size, caps);
    end(round);
    round->done = block != NULL;
    heap_caps_free(block);
}

static void time_free(uint32_t caps, uint32_t size, rtos_round_t *round) {
    void *block = heap_caps_malloc(size, caps);
    begin(round);
    heap_caps_free(block);
    end(round);
    round->done = block != NULL;
}

static void time_realloc(uint32_t caps, uint32_t size, rtos_round_t *round) {
    void *block = heap_caps_malloc(size, caps);
    begin(round);
    void *larger = block != NULL ? heap_caps_realloc(block, 2 * (size_t)size, caps) : NULL;
    end(round);
    round->done = larger != NULL;
    heap_caps_free(larger != NULL ? larger : block);
}

static void read_at_random(const uint32_t *block, uint32_t words, uint32_t random) {
    uint32_t sum = 0;
    for (int i = 0; i < RTOS_MEMORY_READS; i++) {
        sum += block[load_random(&random) & (words - 1)];
    }
    s_sum = sum;
}

static void work_on(rtos_memory_operation_t operation, uint8_t *block, uint8_t *other, uint32_t size) {
    if (operation == RTOS_MEMORY_SET) {
        memset(block, (int)size, size);
    } else if (operation == RTOS_MEMORY_COPY) {
        memcpy(other, block, size);
    } else if (operation == RTOS_MEMORY_MOVE) {
        memmove(block + sizeof(uint32_t), block, size - sizeof(uint32_t));
    } else {
        read_at_random((const uint32_t *)(const void *)block, size / sizeof(uint32_t), size);
    }
}

static void time_work(uint32_t caps, rtos_memory_operation_t operation, uint32_t size, rtos_round_t *round) {
    uint8_t *block = heap_caps_calloc(1, size, caps);
    uint8_t *other = operation == RTOS_MEMORY_COPY ? heap_caps_calloc(1, size, caps) : NULL;
    if (block != NULL && (other != NULL || operation != RTOS_MEMORY_COPY)) {
        begin(round);
        work_on(operation, block, other, size);
        end(round);
        round->done = true;
    }
    heap_caps_free(other);
    heap_caps_free(block);
}

rtos_round_t rtos_memory_time(size_t slot, uint32_t caps) {
    rtos_round_t round = {.begin = rtos_stamp_begin()};
    round.end = round.begin;
    rtos_memory_operation_t operation = rtos_memory_operation(slot);
    uint32_t size = rtos_memory_size(slot);
    if (operation == RTOS_MEMORY_MALLOC || operation == RTOS_MEMORY_MALLOC_IN_HOLES) {
        time_malloc(caps, size, &round);
    } else if (operation == RTOS_MEMORY_FREE || operation == RTOS_MEMORY_FREE_IN_HOLES) {
        time_free(caps, size, &round);
    } else if (operation == RTOS_MEMORY_REALLOC) {
        time_realloc(caps, size, &round);
    } else {
        time_work(caps, operation, size, &round);
    }
    return round;
}

void rtos_memory_make_holes(rtos_memory_holes_t *holes, uint32_t caps, uint32_t *random) {
    for (size_t i = 0; i < RTOS_MEMORY_HOLE_BLOCKS; i++) {
        uint32_t size = HOLE_BLOCK_MIN_BYTES + load_random(random) % HOLE_BLOCK_BYTES;
        holes->blocks[i] = heap_caps_malloc(size, caps);
    }
    for (size_t i = 0; i < RTOS_MEMORY_HOLE_BLOCKS; i += 2) {
        heap_caps_free(holes->blocks[i]);
        holes->blocks[i] = NULL;
    }
}

void rtos_memory_close_holes(rtos_memory_holes_t *holes) {
    for (size_t i = 1; i < RTOS_MEMORY_HOLE_BLOCKS; i += 2) {
        heap_caps_free(holes->blocks[i]);
        holes->blocks[i] = NULL;
    }
}
