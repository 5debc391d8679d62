/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "esp_err.h"
#include "esp_image_format.h"
#include "esp_ota_ops.h"
#include "nvs_flash.h"

#define NAMED(code)                                                                                          \
    { code, #code }

static const struct {
    esp_err_t code;
    const char *name;
} s_names[] = {
    NAMED(ESP_OK),
    NAMED(ESP_FAIL),
    NAMED(ESP_ERR_NO_MEM),
    NAMED(ESP_ERR_INVALID_ARG),
    NAMED(ESP_ERR_INVALID_STATE),
    NAMED(ESP_ERR_INVALID_SIZE),
    NAMED(ESP_ERR_NOT_FOUND),
    NAMED(ESP_ERR_NOT_SUPPORTED),
    NAMED(ESP_ERR_TIMEOUT),
    NAMED(ESP_ERR_INVALID_RESPONSE),
    NAMED(ESP_ERR_INVALID_CRC),
    NAMED(ESP_ERR_INVALID_VERSION),
    NAMED(ESP_ERR_INVALID_MAC),
    NAMED(ESP_ERR_NOT_FINISHED),
    NAMED(ESP_ERR_NOT_ALLOWED),
    NAMED(ESP_ERR_NVS_NO_FREE_PAGES),
    NAMED(ESP_ERR_NVS_NEW_VERSION_FOUND),
    NAMED(ESP_ERR_OTA_PARTITION_CONFLICT),
    NAMED(ESP_ERR_OTA_SELECT_INFO_INVALID),
    NAMED(ESP_ERR_OTA_VALIDATE_FAILED),
    NAMED(ESP_ERR_IMAGE_FLASH_FAIL),
    NAMED(ESP_ERR_IMAGE_INVALID),
};

static const char *find_name(esp_err_t code) {
    for (size_t i = 0; i < sizeof s_names / sizeof s_names[0]; i++) {
        if (s_names[i].code == code) {
            return s_names[i].name;
        }
    }
    return NULL;
}

const char *esp_err_to_name(esp_err_t code) {
    const char *name = find_name(code);
    return name != NULL ? name : "UNKNOWN ERROR";
}

const char *esp_err_to_name_r(esp_err_t code, char *buf, size_t buflen) {
    const char *name = find_name(code);
    if (name != NULL) {
        snprintf(buf, buflen, "%s", name);
    } else {
        snprintf(buf, buflen, "Unknown error 0x%x(%d)", (unsigned)code, code);
    }
    return buf;
}
