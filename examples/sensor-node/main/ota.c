/* SPDX-License-Identifier: Apache-2.0 */
#include "ota.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "esp_http_client.h"
#include "esp_https_ota.h"
#include "esp_system.h"
#include "freertos/FreeRTOS.h"
#include "freertos/task.h"
#include "node_log.h"
#include "settings.h"

#define TASK_STACK_BYTES 8192
#define TASK_PRIORITY 3
#define URL_BYTES 200
#define TIMEOUT_MS 10000
#define TOLD_EVERY_BYTES (64 * 1024)
#define GOODBYE_MS 500 /* for the reply to get away */

static atomic_bool s_running;
static int s_id;
static char s_url[URL_BYTES];

static esp_err_t receive(esp_https_ota_handle_t handle) {
    int told = 0;
    esp_err_t err = ESP_ERR_HTTPS_OTA_IN_PROGRESS;
    while (err == ESP_ERR_HTTPS_OTA_IN_PROGRESS) {
        err = esp_https_ota_perform(handle);
        int read = esp_https_ota_get_image_len_read(handle);
        if (read - told >= TOLD_EVERY_BYTES) {
            told = read;
            node_log("ota", "read=%d of=%d", read, esp_https_ota_get_image_size(handle));
        }
    }
    if (err == ESP_OK && !esp_https_ota_is_complete_data_received(handle)) {
        err = ESP_ERR_INVALID_SIZE;
    }
    return err;
}

static esp_err_t update(void) {
    char *ca = settings_get_text("tls", "ca");
    const esp_http_client_config_t http = {
        .url = s_url, .cert_pem = ca, .timeout_ms = TIMEOUT_MS, .keep_alive_enable = true};
    const esp_https_ota_config_t config = {.http_config = &http};
    esp_https_ota_handle_t handle = NULL;
    esp_err_t err = esp_https_ota_begin(&config, &handle);
    if (err == ESP_OK) {
        err = receive(handle);
        if (err == ESP_OK) {
            err = esp_https_ota_finish(handle);
        } else {
            esp_https_ota_abort(handle);
        }
    }
    free(ca);
    return err;
}

static void run(void *arg) {
    (void)arg;
    node_log("ota", "begin %s", s_url);
    esp_err_t err = update();
    node_log("ota", "%s", err == ESP_OK ? "done, restarting" : esp_err_to_name(err));
    commands_reply(s_id, err == ESP_OK ? NULL : esp_err_to_name(err));
    if (err == ESP_OK) {
        vTaskDelay(pdMS_TO_TICKS(GOODBYE_MS));
        esp_restart();
    }
    atomic_store(&s_running, false);
    vTaskDelete(NULL);
}

const char *ota_start(int id, const char *url) {
    if (url == NULL || strlen(url) >= URL_BYTES) {
        return "url is missing or too long";
    }
    if (atomic_exchange(&s_running, true)) {
        return "an update is running";
    }
    s_id = id;
    snprintf(s_url, sizeof s_url, "%s", url);
    if (xTaskCreate(run, "ota", TASK_STACK_BYTES, NULL, TASK_PRIORITY, NULL) != pdPASS) {
        atomic_store(&s_running, false);
        return "no memory";
    }
    return NULL;
}
