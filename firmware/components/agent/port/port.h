/* SPDX-License-Identifier: Apache-2.0 */
/* What differs between a chip (port/esp), ESP-IDF's linux target (port/linux) and the host build (port/host).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "esp_err.h"
#include "wire.h"

/* Take over the console. Call before anything is printed that must arrive whole. */
esp_err_t port_console_init(void);

/* Wait for input. Returns the number of bytes read, or 0 at the end of input (never on a chip). */
size_t port_console_read(char *buffer, size_t size);

/* Write all bytes, after what other tasks have printed so far. */
void port_console_write(const char *bytes, size_t length);

/* Wait until everything written has left the board. */
void port_console_drain(void);

/* SHA-256 of the running application image: the digest that is appended to its .bin. */
esp_err_t port_firmware_sha256(uint8_t digest[32]);

/* This image works: the boot loader keeps it. Of an image that waits for that (an update over the air) it
 * starts the one before at the next reset; of others nothing is written. */
void port_confirm_image(void);

/* Read from the partition `scratch`. An error where there is none, or not so much of it. */
esp_err_t port_scratch_read(size_t offset, void *bytes, size_t length);

/* SHA-256 of the ELF that the image was made from, version, project and ESP-IDF version. */
typedef struct {
    const uint8_t *elf_sha256;
    const char *project;
    const char *version;
    const char *idf_version;
} port_app_t;
port_app_t port_app(void);

/* Have the idle tasks' time counted, or no longer. Returns whether it is: a host counts always, its idle
 * tasks are threads; ESP-IDF's linux target never. */
bool port_idle_count(bool wanted);
/* A core's idle time in µs, modulo 2^32 (71 min): only differences mean anything. */
uint32_t port_idle_us(int core);

/* Set the clock, which certificates are checked by. A host's clock is right and not ours to set. */
esp_err_t port_set_time(int64_t utc_us);

/* What heap and stack figures are called by: "" on a chip; "host_" where libraries and stack frames are a
 * host's, so that nobody takes them for a device's. */
const char *port_memory_prefix(void);

/* Append what this platform adds to the environment: `sched`, which is "freertos", or "fifo" or "other" where
 * tasks are threads of a host. */
void port_environment_write(wire_line_t *line);

/* A burst begins: figures that port_environment_write() tells of a burst start anew. */
void port_environment_reset(void);
