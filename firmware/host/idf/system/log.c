/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "esp_log.h"
#include "esp_rom_sys.h"
#include "vboard.h"

#define MAX_TAGS 32
#define TAG_BYTES 24
#define HEX_BYTES_PER_LINE 16

static pthread_mutex_t s_lock = PTHREAD_MUTEX_INITIALIZER;
static esp_log_level_t s_default_level = CONFIG_LOG_DEFAULT_LEVEL;
static vprintf_like_t s_vprintf = vprintf;
static struct {
    char tag[TAG_BYTES];
    esp_log_level_t level;
} s_tags[MAX_TAGS];
static int s_tag_count;

static int find_tag(const char *tag) {
    int index = 0;
    while (index < s_tag_count && strncmp(s_tags[index].tag, tag, TAG_BYTES - 1) != 0) {
        index++;
    }
    return index;
}

/* "*" sets the level of all tags. Beyond MAX_TAGS tags a setting is ignored. */
void esp_log_level_set(const char *tag, esp_log_level_t level) {
    pthread_mutex_lock(&s_lock);
    if (strcmp(tag, "*") == 0) {
        s_default_level = level;
        s_tag_count = 0;
    } else {
        int index = find_tag(tag);
        if (index < MAX_TAGS) {
            snprintf(s_tags[index].tag, TAG_BYTES, "%s", tag);
            s_tags[index].level = level;
            s_tag_count = index == s_tag_count ? index + 1 : s_tag_count;
        }
    }
    pthread_mutex_unlock(&s_lock);
}

esp_log_level_t esp_log_level_get(const char *tag) {
    pthread_mutex_lock(&s_lock);
    int index = find_tag(tag);
    esp_log_level_t level = index < s_tag_count ? s_tags[index].level : s_default_level;
    pthread_mutex_unlock(&s_lock);
    return level;
}

vprintf_like_t esp_log_set_vprintf(vprintf_like_t func) {
    return __atomic_exchange_n(&s_vprintf, func, __ATOMIC_ACQ_REL);
}

uint32_t esp_log_timestamp(void) {
    return (uint32_t)(vboard_uptime_us() / 1000);
}

uint32_t esp_log_early_timestamp(void) {
    return esp_log_timestamp();
}

void esp_log_writev(esp_log_level_t level, const char *tag, const char *format, va_list args) {
    if (level <= esp_log_level_get(tag)) {
        __atomic_load_n(&s_vprintf, __ATOMIC_ACQUIRE)(format, args);
    }
}

void esp_log_write(esp_log_level_t level, const char *tag, const char *format, ...) {
    va_list args;
    va_start(args, format);
    esp_log_writev(level, tag, format, args);
    va_end(args);
}

void esp_log_buffer_hex_internal(const char *tag, const void *buffer, uint16_t buff_len,
                                 esp_log_level_t level) {
    static const char letters[] = "NEWIDV";
    const uint8_t *bytes = buffer;
    for (size_t done = 0; done < buff_len; done += HEX_BYTES_PER_LINE) {
        char text[HEX_BYTES_PER_LINE * 3 + 1] = "";
        for (size_t i = 0; i < HEX_BYTES_PER_LINE && done + i < buff_len; i++) {
            snprintf(text + i * 3, 4, "%02x ", bytes[done + i]);
        }
        esp_log_write(level, tag, "%c (%" PRIu32 ") %s: %s\n", letters[level % sizeof letters],
                      esp_log_timestamp(), tag, text);
    }
}

static void describe_line(const uint8_t *bytes, size_t count, char *text, size_t room) {
    int used = snprintf(text, room, "%p   ", (const void *)bytes);
    for (size_t i = 0; i < HEX_BYTES_PER_LINE; i++) {
        const char *gap = i == HEX_BYTES_PER_LINE / 2 ? " " : "";
        used += i < count ? snprintf(text + used, room - (size_t)used, "%s%02x ", gap, bytes[i])
                          : snprintf(text + used, room - (size_t)used, "%s   ", gap);
    }
    used += snprintf(text + used, room - (size_t)used, " |");
    for (size_t i = 0; i < count; i++) {
        const char shown = isprint(bytes[i]) ? (char)bytes[i] : '.';
        used += snprintf(text + used, room - (size_t)used, "%c", shown);
    }
    snprintf(text + used, room - (size_t)used, "|");
}

void esp_log_buffer_hexdump_internal(const char *tag, const void *buffer, uint16_t buff_len,
                                     esp_log_level_t level) {
    static const char letters[] = "NEWIDV";
    for (size_t done = 0; done < buff_len; done += HEX_BYTES_PER_LINE) {
        const size_t left = buff_len - done;
        char text[128];
        describe_line((const uint8_t *)buffer + done, left < HEX_BYTES_PER_LINE ? left : HEX_BYTES_PER_LINE,
                      text, sizeof text);
        esp_log_write(level, tag, "%c (%" PRIu32 ") %s: %s\n", letters[level % sizeof letters],
                      esp_log_timestamp(), tag, text);
    }
}

int __real_vfprintf(FILE *stream, const char *format, va_list arguments);

int esp_rom_printf(const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    int length = __real_vfprintf(stdout, fmt, args); /* the ROM's has no lock */
    va_end(args);
    return length;
}
