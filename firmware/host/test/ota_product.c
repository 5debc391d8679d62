/* SPDX-License-Identifier: Apache-2.0 */
/* A product that updates itself, for tests/firmware/test_host_https.py to talk to: it says its version
 * and its state, and obeys
 *
 *   update URL FILE    FILE has the authority's certificate
 *   confirm | give_up | restart */
#include <stdio.h>
#include <string.h>

#include "esp_event.h"
#include "esp_https_ota.h"
#include "esp_ota_ops.h"
#include "esp_system.h"

static char s_certificate[8192];

static void say_who(void) {
    const esp_partition_t *running = esp_ota_get_running_partition();
    esp_ota_img_states_t state = ESP_OTA_IMG_UNDEFINED;
    esp_ota_get_state_partition(running, &state);
    printf("product %s in %s, state %d\n", esp_app_get_description()->version, running->label, (int)state);
}

static void update(char *arguments) {
    const char *url = strtok(arguments, " ");
    FILE *file = fopen(strtok(NULL, " "), "r");
    s_certificate[file == NULL ? 0 : fread(s_certificate, 1, sizeof s_certificate - 1, file)] = '\0';
    const esp_http_client_config_t http = {.url = url, .cert_pem = s_certificate, .timeout_ms = 5000};
    const esp_err_t err = esp_https_ota(&(esp_https_ota_config_t){.http_config = &http});
    printf("updated: %s\n", esp_err_to_name(err));
}

static void obey(char *line) {
    if (strncmp(line, "update ", 7) == 0) {
        update(line + 7);
    } else if (strcmp(line, "confirm") == 0) {
        printf("confirmed: %s\n", esp_err_to_name(esp_ota_mark_app_valid_cancel_rollback()));
    } else if (strcmp(line, "give_up") == 0) {
        printf("given up: %s\n", esp_err_to_name(esp_ota_mark_app_invalid_rollback_and_reboot()));
    } else if (strcmp(line, "restart") == 0) {
        esp_restart();
    }
}

void app_main(void) {
    char line[512];
    ESP_ERROR_CHECK(esp_event_loop_create_default());
    say_who();
    while (fgets(line, sizeof line, stdin) != NULL) {
        line[strcspn(line, "\r\n")] = '\0';
        obey(line);
    }
}
