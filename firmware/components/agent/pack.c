/* SPDX-License-Identifier: Apache-2.0 */
#include "pack.h"

#include "wire.h"

_Static_assert(BENCH_ARENA_BYTES / 4 * 5 <= PACK_MAX_BLOCKS * WIRE_BLOCK_BYTES, "blocks fit a 64-bit set");

typedef struct {
    uint64_t wanted;
    pack_block_cb_t callback;
    void *context;
    pack_summary_t summary;
    size_t fill;
    uint8_t block[WIRE_BLOCK_BYTES];
} packer_t;

static void finish_block(packer_t *packer) {
    pack_summary_t *summary = &packer->summary;
    summary->crc32 = wire_crc32(summary->crc32, packer->block, packer->fill);
    if (packer->callback != NULL && (packer->wanted >> summary->blocks & 1) != 0) {
        packer->callback(packer->context, summary->blocks, packer->block, packer->fill);
    }
    summary->bytes += packer->fill;
    summary->blocks++;
    packer->fill = 0;
}

static void put(packer_t *packer, int64_t difference) {
    uint8_t bytes[WIRE_VARINT_SIZE];
    size_t length = wire_varint(wire_zigzag(difference), bytes);
    for (size_t i = 0; i < length; i++) {
        packer->block[packer->fill++] = bytes[i];
        if (packer->fill == sizeof(packer->block)) {
            finish_block(packer);
        }
    }
}

pack_summary_t pack_blocks(const bench_samples_t *samples, uint64_t wanted, pack_block_cb_t callback,
                           void *context) {
    /* Static: a kilobyte is too much for a task's stack. Callers hold the transfer, so there is only one. */
    static packer_t packer;
    packer.wanted = wanted;
    packer.callback = callback;
    packer.context = context;
    packer.summary = (pack_summary_t){0};
    packer.fill = 0;
    for (size_t column = 0; column < samples->columns; column++) {
        int64_t previous = 0;
        for (size_t row = 0; row < samples->rows; row++) {
            int64_t value = samples_get(samples, row, column);
            put(&packer, value - previous);
            previous = value;
        }
    }
    if (packer.fill > 0) {
        finish_block(&packer);
    }
    return packer.summary;
}
