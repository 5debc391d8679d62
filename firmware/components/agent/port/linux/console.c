/* SPDX-License-Identifier: Apache-2.0 */
/* Console on standard input and output, for tasks that are threads of which FreeRTOS runs one at a time.
 *
 * To the scheduler a task that waits in a system call is running, and keeps all of lower priority from it:
 * input is polled. A task that is switched away from inside stdio keeps its lock: output goes past stdio.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "freertos/FreeRTOS.h"
#include "freertos/task.h"
#include "port/port.h"

enum { POLL_TICKS = 2 };

esp_err_t port_console_init(void) {
    return ESP_OK;
}

static bool has_input(void) {
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    return poll(&input, 1, 0) > 0; /* at its end, too */
}

size_t port_console_read(char *buffer, size_t size) {
    while (!has_input()) {
        vTaskDelay(POLL_TICKS);
    }
    ssize_t count = read(STDIN_FILENO, buffer, size);
    if (count == 0 || (count < 0 && errno != EINTR && errno != EAGAIN)) {
        _exit(EXIT_SUCCESS); /* the serial port is gone, and with it all that this process is for */
    }
    return count > 0 ? (size_t)count : 0;
}

void port_console_write(const char *bytes, size_t length) {
    while (length > 0) {
        ssize_t count = write(STDOUT_FILENO, bytes, length);
        if (count > 0) {
            bytes += count;
            length -= (size_t)count;
        } else if (errno == EAGAIN) {
            vTaskDelay(POLL_TICKS); /* the other end reads slowly */
        } else if (errno != EINTR) {
            _exit(EXIT_SUCCESS);
        }
    }
}

void port_console_drain(void) {
}
