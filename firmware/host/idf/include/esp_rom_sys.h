/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Busy wait. */
void esp_rom_delay_us(uint32_t us);
int esp_rom_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
uint32_t esp_rom_get_cpu_ticks_per_us(void);

#ifdef __cplusplus
}
#endif
