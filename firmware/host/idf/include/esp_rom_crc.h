/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* As the ROM's: crc is the running value (0 to begin), esp_rom_crc32_le(0, …) equals zlib's crc32. */
uint32_t esp_rom_crc32_le(uint32_t crc, uint8_t const *buf, uint32_t len);

#ifdef __cplusplus
}
#endif
