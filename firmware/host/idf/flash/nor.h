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
