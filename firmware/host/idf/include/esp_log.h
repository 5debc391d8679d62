/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines in ESP-IDF's format without colours: "I (123) tag: text". A line reaches the UART in one
 * write. */
#pragma once
#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>

#include "esp_rom_sys.h"
#include "sdkconfig.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    ESP_LOG_NONE = 0,
    ESP_LOG_ERROR,
    ESP_LOG_WARN,
    ESP_LOG_INFO,
    ESP_LOG_DEBUG,
    ESP_LOG_VERBOSE,
    ESP_LOG_MAX,
} esp_log_level_t;

#ifndef LOG_LOCAL_LEVEL
#define LOG_LOCAL_LEVEL CONFIG_LOG_MAXIMUM_LEVEL
#endif

typedef int (*vprintf_like_t)(const char *, va_list);

void esp_log_level_set(const char *tag, esp_log_level_t level);
esp_log_level_t esp_log_level_get(const char *tag);
vprintf_like_t esp_log_set_vprintf(vprintf_like_t func);
/* Milliseconds since the board's reset. */
uint32_t esp_log_timestamp(void);
uint32_t esp_log_early_timestamp(void);
void esp_log_write(esp_log_level_t level, const char *tag, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void esp_log_writev(esp_log_level_t level, const char *tag, const char *format, va_list args);
void esp_log_buffer_hex_internal(const char *tag, const void *buffer, uint16_t buff_len,
                                 esp_log_level_t level);
/* Lines of address, sixteen bytes and their characters. */
void esp_log_buffer_hexdump_internal(const char *tag, const void *buffer, uint16_t buff_len,
                                     esp_log_level_t level);

#define LOG_FORMAT(letter, format) #letter " (%" PRIu32 ") %s: " format "\n"

#define HOST_LOG_LINE(level, letter, tag, format, ...)                                                       \
    do {                                                                                                     \
        if (LOG_LOCAL_LEVEL >= (level)) {                                                                    \
            esp_log_write((level), (tag), LOG_FORMAT(letter, format), esp_log_timestamp(), (tag),            \
                          ##__VA_ARGS__);                                                                    \
        }                                                                                                    \
    } while (0)

#define ESP_LOGE(tag, format, ...) HOST_LOG_LINE(ESP_LOG_ERROR, E, tag, format, ##__VA_ARGS__)
#define ESP_LOGW(tag, format, ...) HOST_LOG_LINE(ESP_LOG_WARN, W, tag, format, ##__VA_ARGS__)
#define ESP_LOGI(tag, format, ...) HOST_LOG_LINE(ESP_LOG_INFO, I, tag, format, ##__VA_ARGS__)
#define ESP_LOGD(tag, format, ...) HOST_LOG_LINE(ESP_LOG_DEBUG, D, tag, format, ##__VA_ARGS__)
#define ESP_LOGV(tag, format, ...) HOST_LOG_LINE(ESP_LOG_VERBOSE, V, tag, format, ##__VA_ARGS__)

/* By the ROM's printf, past esp_log_set_vprintf(): from an interrupt too. Tags' levels do not count. */
#define HOST_EARLY_LOG_LINE(level, letter, tag, format, ...)                                                 \
    do {                                                                                                     \
        if (LOG_LOCAL_LEVEL >= (level) && CONFIG_LOG_DEFAULT_LEVEL >= (level)) {                             \
            esp_rom_printf(LOG_FORMAT(letter, format), esp_log_early_timestamp(), (tag), ##__VA_ARGS__);     \
        }                                                                                                    \
    } while (0)

#define ESP_EARLY_LOGE(tag, format, ...) HOST_EARLY_LOG_LINE(ESP_LOG_ERROR, E, tag, format, ##__VA_ARGS__)
#define ESP_EARLY_LOGW(tag, format, ...) HOST_EARLY_LOG_LINE(ESP_LOG_WARN, W, tag, format, ##__VA_ARGS__)
#define ESP_EARLY_LOGI(tag, format, ...) HOST_EARLY_LOG_LINE(ESP_LOG_INFO, I, tag, format, ##__VA_ARGS__)
#define ESP_EARLY_LOGD(tag, format, ...) HOST_EARLY_LOG_LINE(ESP_LOG_DEBUG, D, tag, format, ##__VA_ARGS__)
#define ESP_EARLY_LOGV(tag, format, ...) HOST_EARLY_LOG_LINE(ESP_LOG_VERBOSE, V, tag, format, ##__VA_ARGS__)
#define ESP_DRAM_LOGE ESP_EARLY_LOGE
#define ESP_DRAM_LOGW ESP_EARLY_LOGW
#define ESP_DRAM_LOGI ESP_EARLY_LOGI

#define ESP_LOG_BUFFER_HEX_LEVEL(tag, buffer, buff_len, level)                                               \
    do {                                                                                                     \
        if (LOG_LOCAL_LEVEL >= (level)) {                                                                    \
            esp_log_buffer_hex_internal(tag, buffer, buff_len, level);                                       \
        }                                                                                                    \
    } while (0)
#define ESP_LOG_BUFFER_HEXDUMP(tag, buffer, buff_len, level)                                                 \
    do {                                                                                                     \
        if (LOG_LOCAL_LEVEL >= (level)) {                                                                    \
            esp_log_buffer_hexdump_internal(tag, buffer, buff_len, level);                                   \
        }                                                                                                    \
    } while (0)
#define ESP_LOG_BUFFER_HEX(tag, buffer, buff_len)                                                            \
    ESP_LOG_BUFFER_HEX_LEVEL(tag, buffer, buff_len, ESP_LOG_INFO)

#ifdef __cplusplus
}
#endif
