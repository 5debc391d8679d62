/* SPDX-License-Identifier: Apache-2.0 */
#include "settings.h"

#include <stdio.h>
#include <stdlib.h>

#include "nvs.h"
#include "nvs_flash.h"

void settings_init(void) {
    esp_err_t err = nvs_flash_init();
    if (err == ESP_ERR_NVS_NO_FREE_PAGES || err == ESP_ERR_NVS_NEW_VERSION_FOUND) {
        ESP_ERROR_CHECK(nvs_flash_erase());
        err = nvs_flash_init();
    }
    ESP_ERROR_CHECK(err);
}

void settings_get(const char *space, const char *key, const char *fallback, char *out, size_t out_bytes) {
    nvs_handle_t nvs;
    size_t bytes = out_bytes;
    esp_err_t err = nvs_open(space, NVS_READONLY, &nvs);
    if (err == ESP_OK) {
        err = nvs_get_str(nvs, key, out, &bytes);
        nvs_close(nvs);
    }
    if (err != ESP_OK) {
        snprintf(out, out_bytes, "%s", fallback);
    }
}

uint32_t settings_get_u32(const char *space, const char *key, uint32_t fallback) {
    nvs_handle_t nvs;
    uint32_t value = fallback;
    if (nvs_open(space, NVS_READONLY, &nvs) == ESP_OK) {
        if (nvs_get_u32(nvs, key, &value) != ESP_OK) {
            value = fallback;
        }
        nvs_close(nvs);
    }
    return value;
}

char *settings_get_text(const char *space, const char *key) {
    nvs_handle_t nvs;
    size_t bytes = 0;
    char *text = NULL;
    if (nvs_open(space, NVS_READONLY, &nvs) != ESP_OK) {
        return NULL;
    }
    if (nvs_get_str(nvs, key, NULL, &bytes) == ESP_OK) {
        text = malloc(bytes);
    }
    if (text != NULL && nvs_get_str(nvs, key, text, &bytes) != ESP_OK) {
        free(text);
        text = NULL;
    }
    nvs_close(nvs);
    return text;
}

esp_err_t settings_set(const char *space, const char *key, const char *value) {
    nvs_handle_t nvs;
    esp_err_t err = nvs_open(space, NVS_READWRITE, &nvs);
    if (err != ESP_OK) {
        return err;
    }
    err = nvs_set_str(nvs, key, value);
    if (err == ESP_OK) {
        err = nvs_commit(nvs);
    }
    nvs_close(nvs);
    return err;
}

esp_err_t settings_set_u32(const char *space, const char *key, uint32_t value) {
    nvs_handle_t nvs;
    esp_err_t err = nvs_open(space, NVS_READWRITE, &nvs);
    if (err != ESP_OK) {
        return err;
    }
    err = nvs_set_u32(nvs, key, value);
    if (err == ESP_OK) {
        err = nvs_commit(nvs);
    }
    nvs_close(nvs);
    return err;
}
