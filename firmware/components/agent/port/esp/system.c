/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/time.h>

#include "agent/agent.h"
#include "esp_pm.h"
#include "port/port.h"
#include "sdkconfig.h"

/* Cycles are no time where the clock changes, and after a light sleep they stood still; esp_timer goes on. */
static void write_scaling(wire_line_t *line) {
#if CONFIG_PM_ENABLE
    esp_pm_config_t config = {0};
    wire_line_text(line, "frequency_scaling", "on");
    if (esp_pm_get_configuration(&config) == ESP_OK) {
        wire_line_int(line, "cpu_min_mhz", config.min_freq_mhz);
        wire_line_int(line, "cpu_max_mhz", config.max_freq_mhz);
        wire_line_text(line, "light_sleep", config.light_sleep_enable ? "on" : "off");
    }
#else
    (void)line;
#endif
}

void port_environment_write(wire_line_t *line) {
    wire_line_text(line, "sched", "freertos");
    write_scaling(line);
}

void port_environment_reset(void) {
}

esp_err_t port_set_time(int64_t utc_us) {
    if (!agent_config()->set_clock) {
        return ESP_OK;
    }
    struct timeval now = {.tv_sec = (time_t)(utc_us / 1000000), .tv_usec = (suseconds_t)(utc_us % 1000000)};
    return settimeofday(&now, NULL) == 0 ? ESP_OK : ESP_FAIL;
}
