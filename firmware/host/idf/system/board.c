/* SPDX-License-Identifier: Apache-2.0 */
/* The one place that reads the virtual board's environment variables. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "sdkconfig.h"
#include "vboard.h"

#define NS_PER_S INT64_C(1000000000)
#define PPM INT64_C(1000000)
#define FLASH_BYTES (4U * 1024U * 1024U)

/* How far core 1's cycle counter is behind core 0's. On a chip core 0 releases core 1 from reset late in its
 * own start, so the counters differ by an offset that each boot has anew. Here it is no measurement and no
 * random number: by construction one constant, so that whoever takes a difference across the cores for a
 * time, or corrects one wrongly, shows +-190.322 ms and nothing that could pass for a real latency. */
#define CORE1_BEHIND_US 190322

static vboard_t s_board;
static pthread_once_t s_once = PTHREAD_ONCE_INIT;

static void refuse(const char *name, const char *value, const char *expected) {
    fprintf(stderr, "%s=%s is not %s\n", name, value, expected);
    _exit(2);
}

static long long number(const char *name, int base, long long otherwise) {
    const char *text = getenv(name);
    if (text == NULL) {
        return otherwise;
    }
    char *end = NULL;
    long long value = strtoll(text, &end, base);
    if (end == text || *end != '\0' || value < 0) {
        refuse(name, text, base == 16 ? "a hexadecimal number" : "a number");
    }
    return value;
}

static int between(const char *name, int least, int most, int otherwise, const char *expected) {
    const char *text = getenv(name);
    if (text == NULL) {
        return otherwise;
    }
    char *end = NULL;
    long value = strtol(text, &end, 10);
    if (end == text || *end != '\0' || value < least || value > most) {
        refuse(name, text, expected);
    }
    return (int)value;
}

static esp_reset_reason_t reset_reason(void) {
    static const struct {
        const char *name;
        esp_reset_reason_t reason;
    } reasons[] = {{"POWERON", ESP_RST_POWERON},   {"SW", ESP_RST_SW},
                   {"PANIC", ESP_RST_PANIC},       {"INT_WDT", ESP_RST_INT_WDT},
                   {"TASK_WDT", ESP_RST_TASK_WDT}, {"WDT", ESP_RST_WDT},
                   {"BROWNOUT", ESP_RST_BROWNOUT}};
    const char *text = getenv("VBOARD_RESET_REASON");
    if (text == NULL) {
        return ESP_RST_POWERON;
    }
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++) {
        if (strcmp(text, reasons[i].name) == 0) {
            return reasons[i].reason;
        }
    }
    refuse("VBOARD_RESET_REASON", text, "POWERON, SW, PANIC, INT_WDT, TASK_WDT, WDT or BROWNOUT");
    return ESP_RST_UNKNOWN;
}

/* A product's program warns, this project's own fail. */
static bool is_strict(void) {
    const char *text = getenv("VBOARD_STRICT");
    if (text == NULL) {
#ifdef HIL_IS_PRODUCT
        return false;
#else
        return true;
#endif
    }
    if (strcmp(text, "fail") != 0 && strcmp(text, "warn") != 0) {
        refuse("VBOARD_STRICT", text, "fail or warn");
    }
    return strcmp(text, "fail") == 0;
}

static void read_mac(uint8_t mac[6]) {
    const char *text = getenv("VBOARD_MAC");
    text = text != NULL ? text : "24:0a:c4:00:00:01"; /* an Espressif prefix, for a program run by hand */
    int used = 0;
    int found = sscanf(text, "%2hhx:%2hhx:%2hhx:%2hhx:%2hhx:%2hhx%n", &mac[0], &mac[1], &mac[2], &mac[3],
                       &mac[4], &mac[5], &used);
    if (found != 6 || text[used] != '\0') {
        refuse("VBOARD_MAC", text, "six bytes in hexadecimal with colons");
    }
}

static int64_t monotonic_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

static int blank_flash(void) {
    int fd = memfd_create("flash", MFD_CLOEXEC);
    void *content = MAP_FAILED;
    if (fd >= 0 && ftruncate(fd, FLASH_BYTES) == 0) {
        content = mmap(NULL, FLASH_BYTES, PROT_WRITE, MAP_SHARED, fd, 0);
    }
    if (content == MAP_FAILED) {
        perror("flash in memory");
        _exit(2);
    }
    memset(content, 0xff, FLASH_BYTES);
    munmap(content, FLASH_BYTES);
    return fd;
}

static void open_flash(vboard_t *board) {
    int fd = (int)number("VBOARD_FLASH_FD", 10, -1);
    board->flash_given = fd >= 0;
    board->flash_fd = board->flash_given ? fd : blank_flash();
    struct stat status;
    if (fstat(board->flash_fd, &status) != 0) {
        refuse("VBOARD_FLASH_FD", getenv("VBOARD_FLASH_FD"), "an open file");
    }
    board->flash_size_bytes = (uint32_t)status.st_size;
}

static void read_environment(void) {
    const char *chip = getenv("VBOARD_CHIP");
    if (chip != NULL && strcmp(chip, CONFIG_IDF_TARGET) != 0) {
        refuse("VBOARD_CHIP", chip, CONFIG_IDF_TARGET ", which this program is built for");
    }
    s_board.wall_time_s = number("VBOARD_TIME_S", 10, -1);
    s_board.boot_us = number("VBOARD_BOOT_US", 10, monotonic_ns() / 1000);
    s_board.core1_behind_us = number("VBOARD_CORE1_BEHIND_US", 10, CORE1_BEHIND_US);
    s_board.crystal_ppm =
        between("VBOARD_CRYSTAL_PPM", -100000, 100000, 0, "a number from -100000 to 100000, in ppm");
    s_board.rssi_dbm = between("VBOARD_RSSI_DBM", -127, 0, -50, "a signal strength from -127 to 0");
    s_board.channel = between("VBOARD_CHANNEL", 1, 13, 6, "a channel from 1 to 13");
    s_board.app_offset = (uint32_t)number("VBOARD_APP_OFFSET", 16, 0);
    s_board.reset_reason = reset_reason();
    s_board.strict = is_strict();
    s_board.strict_heap = s_board.strict && getenv("VBOARD_STRICT") != NULL;
    read_mac(s_board.mac);
    open_flash(&s_board);
}

const vboard_t *vboard(void) {
    pthread_once(&s_once, read_environment);
    return &s_board;
}

int64_t vboard_uptime_ns(void) {
    const int64_t ns = monotonic_ns() - vboard()->boot_us * 1000;
    const int64_t ppm = vboard()->crystal_ppm;
    return ns + ns / PPM * ppm + ns % PPM * ppm / PPM; /* ns * ppm is too much after some hours */
}

int64_t vboard_uptime_us(void) {
    return vboard_uptime_ns() / 1000;
}

int64_t vboard_monotonic_us(int64_t uptime_us) {
    const int64_t pace = PPM + vboard()->crystal_ppm;
    return vboard()->boot_us + uptime_us / pace * PPM + (uptime_us % pace * PPM + pace - 1) / pace;
}
