/* SPDX-License-Identifier: Apache-2.0 */
/* Big-endian integers in a message. */
#pragma once

#include <stddef.h>
#include <stdint.h>

static inline void put32(uint8_t *out, size_t offset, uint32_t value) {
    out[offset] = (uint8_t)(value >> 24);
    out[offset + 1] = (uint8_t)(value >> 16);
    out[offset + 2] = (uint8_t)(value >> 8);
    out[offset + 3] = (uint8_t)value;
}

static inline void put16(uint8_t *out, size_t offset, uint32_t value) {
    out[offset] = (uint8_t)(value >> 8);
    out[offset + 1] = (uint8_t)value;
}

static inline uint32_t get32(const uint8_t *in, size_t offset) {
    return (uint32_t)in[offset] << 24 | (uint32_t)in[offset + 1] << 16 | (uint32_t)in[offset + 2] << 8 |
           in[offset + 3];
}

static inline uint32_t get16(const uint8_t *in, size_t offset) {
    return (uint32_t)in[offset] << 8 | in[offset + 1];
}

static inline int64_t join(uint32_t upper, uint32_t lower) {
    return (int64_t)((uint64_t)upper << 32 | lower);
}
