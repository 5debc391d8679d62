/* SPDX-License-Identifier: Apache-2.0 */
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
    int64_t wall_time_s;             /* VBOARD_TIME_S: seconds since 1970 at reset; -1: the machine's clock */
    int64_t boot_us;                 /* VBOARD_BOOT_US: CLOCK_MONOTONIC at reset, µs */
    int64_t core1_behind_us;         /* VBOARD_CORE1_BEHIND_US: core 1's cycle counter behind core 0's, µs */
    int crystal_ppm;                 /* VBOARD_CRYSTAL_PPM: how much faster its clocks go than the host's */
    int rssi_dbm;                    /* VBOARD_RSSI_DBM */
    int channel;                     /* VBOARD_CHANNEL: of the access point */
    bool strict; /* VBOARD_STRICT, fail or warn: what fails on a chip fails here, or is said on the console */
    bool strict_heap; /* the same of memory: VBOARD_STRICT=fail alone, for studies send what no chip holds */
} vboard_t;

/* Read from the environment at the first call; a variable that does not parse, and a VBOARD_CHIP that this
 * program is not built for, end the program with a sentence on stderr and status 2. */
const vboard_t *vboard(void);

/* "fifo" when tasks run with real-time priority, "other" when the host does not permit it. */
const char *vboard_sched_name(void);

/* How late, at worst, the esp_timer task called back since the last reset, µs; and that reset. */
int64_t vboard_timer_lateness_max_us(void);
void vboard_timer_lateness_reset(void);

/* Since reset by the board's crystal: µs as esp_timer_get_time(), and ns. */
int64_t vboard_uptime_us(void);
int64_t vboard_uptime_ns(void);

/* When the host's CLOCK_MONOTONIC comes to an uptime, µs; never early. */
int64_t vboard_monotonic_us(int64_t uptime_us);

/* An interrupt of a core: a thread above all its tasks, also where one has suspended the scheduler. The
 * service runs in interrupt context (xPortInIsrContext()) when the interrupt was raised, however often, and
 * when the moment has come that it last returned: microseconds since reset, INT64_MAX for never. */
typedef struct vboard_interrupt vboard_interrupt_t;
typedef int64_t (*vboard_service_t)(void *context);

/* NULL where there is no memory for it. Deleting waits for a service that runs; not from an interrupt. */
vboard_interrupt_t *vboard_interrupt_new(int core, vboard_service_t service, void *context);
void vboard_interrupt_delete(vboard_interrupt_t *interrupt);

/* From anywhere; and from a task, until the service has run for all that was raised before. */
void vboard_interrupt_raise(vboard_interrupt_t *interrupt);
void vboard_interrupt_wait(vboard_interrupt_t *interrupt);

/* The witness of the host's lateness: a thread on each core, above all tasks and interrupts, that wakes every
 * 500 µs, between the ticks, and notes when it was late by 100 µs or more, from when it should have woken
 * until it did. Starting it again forgets what was noted; stopping it keeps it. Not from several tasks at
 * once. */
void vboard_witness_start(void);
void vboard_witness_stop(void);

/* How often the witness was late since it was started, and its worst lateness in a spell that overlaps
 * [from_us, until_us], µs, on a core or on any (tskNO_AFFINITY); 0 where there is no such spell. While it is
 * stopped. */
uint32_t vboard_witness_count(void);
uint32_t vboard_witness_late_us(int core, int64_t from_us, int64_t until_us);

#ifdef __cplusplus
}
#endif
