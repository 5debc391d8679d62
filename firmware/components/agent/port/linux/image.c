/* SPDX-License-Identifier: Apache-2.0 */
/* ESP-IDF's linux target has no image and no flash: it checks function, never performance. */
#include "agent/agent.h"
#include "esp_idf_version.h"
#include "port/port.h"

esp_err_t port_firmware_sha256(uint8_t digest[32]) {
    (void)digest;
    return ESP_ERR_NOT_SUPPORTED;
}

void port_confirm_image(void) {
}

esp_err_t port_scratch_read(size_t offset, void *bytes, size_t length) {
    (void)offset;
    (void)bytes;
    (void)length;
    return ESP_ERR_NOT_SUPPORTED;
}

esp_err_t agent_image_sizes(uint32_t *image_bytes, uint32_t *slot_bytes) {
    (void)image_bytes;
    (void)slot_bytes;
    return ESP_ERR_NOT_SUPPORTED;
}

port_app_t port_app(void) {
    static const uint8_t none[32];
    return (port_app_t){
        .elf_sha256 = none,
        .project = "hil-firmware",
        .version = PROJECT_VER,
        .idf_version = esp_get_idf_version(),
    };
}

void port_environment_write(wire_line_t *line) {
    wire_line_text(line, "sched", "simulator"); /* FreeRTOS' POSIX port: one core, tick by signal */
}

void port_environment_reset(void) {
}

esp_err_t port_set_time(int64_t utc_us) {
    (void)utc_us;
    return ESP_OK;
}
