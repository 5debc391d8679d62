/* SPDX-License-Identifier: Apache-2.0 */
// An update as its own sources see it.
#pragma once

#include "esp_https_ota.h"
#include "esp_ota_ops.h"

// The least size of the buffer, and what is read of an image before any of it is written.
#define HTTPS_OTA_HEAD_BYTES 1024

typedef enum {
    HTTPS_OTA_INIT,
    HTTPS_OTA_BEGIN,
    HTTPS_OTA_IN_PROGRESS,
    HTTPS_OTA_SUCCESS,
    HTTPS_OTA_RESUME,
} https_ota_state_t;

typedef struct {
    https_ota_state_t state;
    esp_http_client_handle_t client;
    esp_ota_handle_t update;
    const esp_partition_t *staging;
    const esp_partition_t *final;
    bool copies;
    char *buffer;
    size_t buffer_bytes;
    int written_bytes; // or, before the first write, what is in the buffer
    int image_bytes;   // -1: the server did not say
    int request_bytes; // of a range
    bool bulk_erase;
    bool partial;
    bool resumes;
    int authorizations_left;
} https_ota_t;

// https_ota.c
void https_ota_event(esp_https_ota_event_t id, const void *data, size_t size);

// https_ota_head.c: HTTPS_OTA_HEAD_BYTES into the buffer; ESP_FAIL where there are not as many.
esp_err_t https_ota_read_head(https_ota_t *ota);

// https_ota_chip.c: ESP_ERR_INVALID_VERSION where the image's head says another chip, or another revision.
esp_err_t https_ota_verify_chip(const void *head);

// https_ota_connect.c: opens the download and learns the image's size.
esp_err_t https_ota_connect(https_ota_t *ota);
// The next range of a partial download.
esp_err_t https_ota_next_range(https_ota_t *ota);
