/* What the virtual board tells the program it started, and what the host adds to ESP-IDF's API. Firmware
 * sources do not include this: host/idf, the host's ports and tests do. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "esp_system.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    int flash_fd;              /* VBOARD_FLASH_FD: the NOR flash file; a blank flash in memory without it */
    bool flash_given;          /* false: started by hand, nothing was flashed */
    uint32_t flash_size_bytes; /* size of that file */
    uint32_t app_offset;       /* VBOARD_APP_OFFSET, hexadecimal: address of the running app partition */
    uint8_t mac[6];            /* VBOARD_MAC: base address */
    esp_reset_reason_t reset_reason; /* VBOARD_RESET_REASON */
    int64_t boot_us;                 /* VBOARD_BOOT_US: CLOCK_MONOTONIC at reset, µs */
} vboard_t;

/* Read from the environment at the first call; a variable that does not parse, and a VBOARD_CHIP that this
 * program is not built for, end the program with a sentence on stderr and status 2. */
const vboard_t *vboard(void);

/* "fifo" when tasks run with real-time priority, "other" when the host does not permit it. */
const char *vboard_sched_name(void);

/* How late, at worst, the esp_timer task called back since the last reset, µs; and that reset. */
int64_t vboard_timer_lateness_max_us(void);
void vboard_timer_lateness_reset(void);

/* Microseconds since reset, as esp_timer_get_time(). */
int64_t vboard_uptime_us(void);

#ifdef __cplusplus
}
#endif
