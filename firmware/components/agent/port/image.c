/* The running image, through the same calls on a chip and on a virtual board's flash. */
#include "esp_app_desc.h"
#include "esp_ota_ops.h"
#include "esp_partition.h"
#include "port/port.h"

esp_err_t port_firmware_sha256(uint8_t digest[32]) {
    const esp_partition_t *running = esp_ota_get_running_partition();
    return running == NULL ? ESP_ERR_NOT_FOUND : esp_partition_get_sha256(running, digest);
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
