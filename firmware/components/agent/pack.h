/* SPDX-License-Identifier: Apache-2.0 */
/* Packing of samples: column after column, first differences, zigzag, varint, cut into blocks.
 *
 * Nothing packed is stored: blocks are made again whenever they are sent, so that the arena is all the
 * memory a transfer needs.
 */
#pragma once

#include "samples_private.h"

/* A value packs to five bytes at most, so BENCH_ARENA_BYTES / 4 values make at most 60 blocks of 1 KiB. */
enum { PACK_MAX_BLOCKS = 64 };

typedef struct {
    size_t bytes;
    size_t blocks;
    uint32_t crc32; /* of all packed bytes */
} pack_summary_t;

typedef void (*pack_block_cb_t)(void *context, size_t block, const uint8_t *bytes, size_t length);

/* Pack everything and hand out the blocks whose bit is set in `wanted`, in order. `callback` may be NULL
 * where only the summary matters. All blocks hold WIRE_BLOCK_BYTES, except that the last may be shorter. */
pack_summary_t pack_blocks(const bench_samples_t *samples, uint64_t wanted, pack_block_cb_t callback,
                           void *context);
