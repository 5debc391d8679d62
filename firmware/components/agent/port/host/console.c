/* SPDX-License-Identifier: Apache-2.0 */
/* Console on standard input and output: the other end plays the serial port. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "port/port.h"

esp_err_t port_console_init(void) {
    return ESP_OK;
}

size_t port_console_read(char *buffer, size_t size) {
    ssize_t count = 0;
    do {
        count = read(STDIN_FILENO, buffer, size);
    } while (count < 0 && errno == EINTR);
    if (count <= 0) { /* the serial port is gone, and with it all that this process is for */
        fflush(stdout);
        _exit(EXIT_SUCCESS);
    }
    return (size_t)count;
}

void port_console_write(const char *bytes, size_t length) {
    fwrite(bytes, 1, length, stdout);
    fflush(stdout);
}

void port_console_drain(void) {
    fflush(stdout);
}
