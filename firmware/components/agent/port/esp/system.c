/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/time.h>

#include "port/port.h"

void port_environment_write(wire_line_t *line) {
    wire_line_text(line, "sched", "freertos");
}

void port_environment_reset(void) {
}

esp_err_t port_set_time(int64_t utc_us) {
    struct timeval now = {.tv_sec = (time_t)(utc_us / 1000000), .tv_usec = (suseconds_t)(utc_us % 1000000)};
    return settimeofday(&now, NULL) == 0 ? ESP_OK : ESP_FAIL;
}
