/* SPDX-License-Identifier: Apache-2.0 */
/* Chip, clock, identity, reset. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "esp_chip_info.h"
#include "esp_cpu.h"
#include "esp_random.h"
#include "esp_rom_crc.h"
#include "esp_rom_sys.h"
#include "esp_system.h"
#include "freertos/FreeRTOS.h"
#include "nvs_flash.h"
#include "vboard.h"

#define SHUTDOWN_HANDLERS 5 /* as on the chip */

static shutdown_handler_t s_handlers[SHUTDOWN_HANDLERS];
static portMUX_TYPE s_lock = portMUX_INITIALIZER_UNLOCKED;

/* Puts `to` in the place of `from`; NULL is a free place. */
static bool replace_handler(shutdown_handler_t from, shutdown_handler_t to) {
    bool found = false;
    portENTER_CRITICAL(&s_lock);
    for (int i = 0; i < SHUTDOWN_HANDLERS && !found; i++) {
        if (s_handlers[i] == from) {
            s_handlers[i] = to;
            found = true;
        }
    }
    portEXIT_CRITICAL(&s_lock);
    return found;
}

static bool is_registered(shutdown_handler_t handler) {
    return replace_handler(handler, handler);
}

esp_err_t esp_register_shutdown_handler(shutdown_handler_t handle) {
    if (is_registered(handle)) {
        return ESP_ERR_INVALID_STATE;
    }
    return replace_handler(NULL, handle) ? ESP_OK : ESP_ERR_NO_MEM;
}

esp_err_t esp_unregister_shutdown_handler(shutdown_handler_t handle) {
    return replace_handler(handle, NULL) ? ESP_OK : ESP_ERR_INVALID_STATE;
}

/* Status 0 tells the virtual board to boot again. Nothing is unwound: other tasks still run. */
void esp_restart(void) {
    for (int i = SHUTDOWN_HANDLERS - 1; i >= 0; i--) {
        if (s_handlers[i] != NULL) {
            s_handlers[i]();
        }
    }
    fflush(stdout);
    _exit(0);
}

esp_reset_reason_t esp_reset_reason(void) {
    return vboard()->reset_reason;
}

const char *esp_get_idf_version(void) {
    return IDF_VER;
}

/* The chips that the virtual board plays (hil/virtual/board). */
#if CONFIG_IDF_TARGET_ESP32S3
#define CHIP_MODEL CHIP_ESP32S3
#define CHIP_REVISION 2
#define CHIP_FEATURES 0
#elif CONFIG_IDF_TARGET_ESP32C3
#define CHIP_MODEL CHIP_ESP32C3
#define CHIP_REVISION 4
#define CHIP_FEATURES CHIP_FEATURE_EMB_FLASH
#else
#define CHIP_MODEL CHIP_ESP32
#define CHIP_REVISION 301
#define CHIP_FEATURES CHIP_FEATURE_BT
#endif

void esp_chip_info(esp_chip_info_t *out_info) {
    memset(out_info, 0, sizeof *out_info);
    out_info->cores = portNUM_PROCESSORS;
    out_info->features = CHIP_FEATURE_WIFI_BGN | CHIP_FEATURE_BLE | CHIP_FEATURES;
    out_info->model = CHIP_MODEL;
    out_info->revision = CHIP_REVISION;
}

static uint64_t core0_cycles(void) {
    const uint64_t ns = (uint64_t)vboard_uptime_ns();
    return ns / 1000 * CONFIG_ESP_DEFAULT_CPU_FREQ_MHZ + ns % 1000 * CONFIG_ESP_DEFAULT_CPU_FREQ_MHZ / 1000;
}

esp_cpu_cycle_count_t esp_cpu_get_cycle_count(void) {
    uint64_t behind = (uint64_t)vboard()->core1_behind_us * CONFIG_ESP_DEFAULT_CPU_FREQ_MHZ;
    int core;
    uint64_t cycles;
    do { /* again when a task without affinity was moved between the two reads: a chip's read is one */
        core = esp_cpu_get_core_id();
        cycles = core0_cycles();
    } while (core != esp_cpu_get_core_id());
    return (esp_cpu_cycle_count_t)(core == 0 ? cycles : cycles - behind);
}

uint32_t esp_rom_get_cpu_ticks_per_us(void) {
    return CONFIG_ESP_DEFAULT_CPU_FREQ_MHZ;
}

void esp_rom_delay_us(uint32_t us) {
    int64_t end = vboard_uptime_us() + us;
    while (vboard_uptime_us() < end) {
    }
}

void esp_fill_random(void *buf, size_t len) {
    uint8_t *bytes = buf;
    while (len > 0) {
        ssize_t got = getrandom(bytes, len, 0);
        if (got > 0) {
            bytes += got;
            len -= (size_t)got;
        }
    }
}

uint32_t esp_random(void) {
    uint32_t value;
    esp_fill_random(&value, sizeof value);
    return value;
}

uint32_t esp_rom_crc32_le(uint32_t crc, uint8_t const *buf, uint32_t len) {
    crc = ~crc;
    for (uint32_t i = 0; i < len; i++) {
        crc ^= buf[i];
        for (int bit = 0; bit < 8; bit++) {
            crc = (crc >> 1) ^ (0xedb88320U & (0U - (crc & 1U)));
        }
    }
    return ~crc;
}
