/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "nor.h"

#include <string.h>
#include <unistd.h>

#include "vboard.h"

static bool inside(uint32_t address, size_t bytes) {
    return address <= vboard()->flash_size_bytes && bytes <= vboard()->flash_size_bytes - address;
}

esp_err_t nor_read(uint32_t address, void *buffer, size_t bytes) {
    if (!inside(address, bytes)) {
        return ESP_ERR_INVALID_SIZE;
    }
    return pread(vboard()->flash_fd, buffer, bytes, address) == (ssize_t)bytes ? ESP_OK : ESP_FAIL;
}

static esp_err_t store(uint32_t address, const void *data, size_t bytes) {
    return pwrite(vboard()->flash_fd, data, bytes, address) == (ssize_t)bytes ? ESP_OK : ESP_FAIL;
}

static esp_err_t program_piece(uint32_t address, const uint8_t *data, size_t bytes) {
    uint8_t cells[256];
    esp_err_t result = nor_read(address, cells, bytes);
    for (size_t i = 0; i < bytes; i++) {
        cells[i] &= data[i];
    }
    return result == ESP_OK ? store(address, cells, bytes) : result;
}

esp_err_t nor_program(uint32_t address, const void *data, size_t bytes) {
    esp_err_t result = inside(address, bytes) ? ESP_OK : ESP_ERR_INVALID_SIZE;
    const uint8_t *next = data;
    while (bytes > 0 && result == ESP_OK) {
        size_t piece = bytes < 256 ? bytes : 256;
        result = program_piece(address, next, piece);
        address += (uint32_t)piece;
        next += piece;
        bytes -= piece;
    }
    return result;
}

esp_err_t nor_erase(uint32_t address, size_t bytes) {
    if (!inside(address, bytes) || address % NOR_SECTOR_BYTES != 0 || bytes % NOR_SECTOR_BYTES != 0) {
        return ESP_ERR_INVALID_SIZE;
    }
    uint8_t blank[NOR_SECTOR_BYTES];
    memset(blank, 0xff, sizeof blank);
    esp_err_t result = ESP_OK;
    for (size_t done = 0; done < bytes && result == ESP_OK; done += NOR_SECTOR_BYTES) {
        result = store(address + (uint32_t)done, blank, sizeof blank);
    }
    return result;
}
