/* SPDX-License-Identifier: Apache-2.0 */
/* The board's NOR flash: a file that board and program share. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "esp_err.h"

#define NOR_SECTOR_BYTES 4096U

esp_err_t nor_read(uint32_t address, void *buffer, size_t bytes);
/* Clears bits, never sets them. */
esp_err_t nor_program(uint32_t address, const void *data, size_t bytes);
esp_err_t nor_erase(uint32_t address, size_t bytes);

/* Waits as long as a Winbond W25Q32JV typically takes (data sheet, AC characteristics): 30 µs for the first
 * byte and 2.5 µs for each further one up to 0.4 ms a page of 256 bytes; 45 ms a sector. NVS does; other
 * operations take no time. */
void nor_wait_program(size_t bytes);
void nor_wait_erase(size_t sectors);
/* How often a sector was erased since the program began. */
uint32_t nor_erase_count(uint32_t address);
