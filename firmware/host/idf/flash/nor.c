/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "nor.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "vboard.h"

#define PAGE_BYTES 256U
#define MAX_SECTORS (16U * 1024U * 1024U / NOR_SECTOR_BYTES) /* wear is counted in the first 16 MiB */

static uint16_t s_erased[MAX_SECTORS];

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
        uint32_t sector = (address + (uint32_t)done) / NOR_SECTOR_BYTES;
        if (sector < MAX_SECTORS) {
            __atomic_add_fetch(&s_erased[sector], 1, __ATOMIC_RELAXED);
        }
    }
    return result;
}

uint32_t nor_erase_count(uint32_t address) {
    uint32_t sector = address / NOR_SECTOR_BYTES;
    return sector < MAX_SECTORS ? __atomic_load_n(&s_erased[sector], __ATOMIC_RELAXED) : 0;
}

static void wait_ns(int64_t ns) {
    struct timespec left = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR) {
    }
}

static int64_t program_ns(size_t bytes) {
    int64_t by_byte_ns = bytes > 0 ? 30000 + (int64_t)(bytes - 1) * 2500 : 0;
    return by_byte_ns < 400000 ? by_byte_ns : 400000;
}

void nor_wait_program(size_t bytes) {
    wait_ns((int64_t)(bytes / PAGE_BYTES) * program_ns(PAGE_BYTES) + program_ns(bytes % PAGE_BYTES));
}

void nor_wait_erase(size_t sectors) {
    wait_ns((int64_t)sectors * 45000000);
}
