/* SPDX-License-Identifier: Apache-2.0 */
/* The running image, and what else the flash holds, through the same calls on a chip and on a virtual board's
 * flash. */
#include "agent/agent.h"
#include "esp_app_desc.h"
#include "esp_image_format.h"
#include "esp_ota_ops.h"
#include "esp_partition.h"
#include "port/port.h"

esp_err_t port_firmware_sha256(uint8_t digest[32]) {
    const esp_partition_t *running = esp_ota_get_running_partition();
    return running == NULL ? ESP_ERR_NOT_FOUND : esp_partition_get_sha256(running, digest);
}

void port_confirm_image(void) {
    static bool s_asked;
    esp_ota_img_states_t state;
    if (s_asked) {
        return;
    }
    s_asked = true;
    if (esp_ota_get_state_partition(esp_ota_get_running_partition(), &state) == ESP_OK &&
        state == ESP_OTA_IMG_PENDING_VERIFY) {
        esp_ota_mark_app_valid_cancel_rollback();
    }
}

esp_err_t port_scratch_read(size_t offset, void *bytes, size_t length) {
    const esp_partition_t *scratch =
        esp_partition_find_first(ESP_PARTITION_TYPE_DATA, ESP_PARTITION_SUBTYPE_ANY, "scratch");
    return scratch == NULL ? ESP_ERR_NOT_FOUND : esp_partition_read(scratch, offset, bytes, length);
}

esp_err_t agent_image_sizes(uint32_t *image_bytes, uint32_t *slot_bytes) {
    const esp_partition_t *running = esp_ota_get_running_partition();
    if (running == NULL) {
        return ESP_ERR_NOT_FOUND;
    }
    const esp_partition_pos_t place = {.offset = running->address, .size = running->size};
    esp_image_metadata_t image;
    esp_err_t err = esp_image_get_metadata(&place, &image);
    *image_bytes = err == ESP_OK ? image.image_len : 0;
    *slot_bytes = running->size;
    return err;
}

port_app_t port_app(void) {
    const esp_app_desc_t *app = esp_app_get_description();
    return (port_app_t){
        .elf_sha256 = app->app_elf_sha256,
        .project = app->project_name,
        .version = app->version,
        .idf_version = app->idf_ver,
    };
}
