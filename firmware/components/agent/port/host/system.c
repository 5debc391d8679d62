/* SPDX-License-Identifier: Apache-2.0 */
#include "port/port.h"
#include "vboard.h"

void port_environment_write(wire_line_t *line) {
    wire_line_text(line, "sched", vboard_sched_name());
    wire_line_text(line, "strict", vboard()->strict ? "fail" : "warn");
    wire_line_int(line, "timer_lateness_max_us", vboard_timer_lateness_max_us());
}

void port_environment_reset(void) {
    vboard_timer_lateness_reset();
}

esp_err_t port_set_time(int64_t utc_us) {
    (void)utc_us;
    return ESP_OK;
}
