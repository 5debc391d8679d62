/* SPDX-License-Identifier: Apache-2.0 */
/* The API follows ESP-IDF v5.5; the version string says that this is the host's subset of it. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

#define ESP_IDF_VERSION_MAJOR 5
#define ESP_IDF_VERSION_MINOR 5
#define ESP_IDF_VERSION_PATCH 4
#define ESP_IDF_VERSION_VAL(major, minor, patch) (((major) << 16) | ((minor) << 8) | (patch))
#define ESP_IDF_VERSION                                                                                      \
    ESP_IDF_VERSION_VAL(ESP_IDF_VERSION_MAJOR, ESP_IDF_VERSION_MINOR, ESP_IDF_VERSION_PATCH)
#define IDF_VER "v5.5.4-host"

const char *esp_get_idf_version(void);

#ifdef __cplusplus
}
#endif
