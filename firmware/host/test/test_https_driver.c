/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP client over TLS, driven line by line from stdin: tests/firmware/test_host_https.py says what to
 * do.
 *
 *   get URL key=value…    ca FILE, global FILE, bundle, name NAME, skip, async, resume (how many requests on
 * one client, each on a connection of its own)
 *
 * Prints what perform() returned, the status, bytes of the body, and the last error of TLS. */
#include "esp_crt_bundle.h"
#include "esp_http_client.h"
#include "esp_timer.h"
#include "esp_tls.h"
#include "expect.h"

static int s_body_bytes;
static int s_calls;

static esp_err_t on_event(esp_http_client_event_t *event) {
    s_body_bytes += event->event_id == HTTP_EVENT_ON_DATA ? event->data_len : 0;
    return ESP_OK;
}

static const char *read_file(const char *path) {
    static char texts[2][16384];
    static int next;
    char *kept = texts[next++ % 2];
    FILE *file = fopen(path, "r");
    EXPECT(file != NULL);
    kept[fread(kept, 1, sizeof texts[0] - 1, file)] = '\0';
    fclose(file);
    return kept;
}

static int take_option(esp_http_client_config_t *config, char *option) {
    static char name[64];
    char *value = strchr(option, '=');
    if (value != NULL) {
        *value++ = '\0';
    }
    if (strcmp(option, "ca") == 0) {
        config->cert_pem = read_file(value);
    } else if (strcmp(option, "global") == 0) {
        const char *pem = read_file(value);
        config->use_global_ca_store = true;
        EXPECT(esp_tls_set_global_ca_store((const unsigned char *)pem, (unsigned)strlen(pem) + 1) == ESP_OK);
    } else if (strcmp(option, "bundle") == 0) {
        config->crt_bundle_attach = esp_crt_bundle_attach;
    } else if (strcmp(option, "name") == 0) {
        snprintf(name, sizeof name, "%s", value);
        config->common_name = name;
    } else if (strcmp(option, "skip") == 0) {
        config->skip_cert_common_name_check = true;
    } else if (strcmp(option, "async") == 0) {
        config->is_async = true;
    } else if (strcmp(option, "resume") == 0) {
        config->save_client_session = true;
        return atoi(value);
    }
    return 1;
}

static esp_err_t perform(esp_http_client_handle_t client) {
    const int64_t deadline_us = esp_timer_get_time() + 10000000;
    esp_err_t err;
    s_calls = 0;
    do {
        err = esp_http_client_perform(client);
        s_calls++;
    } while (err == ESP_ERR_HTTP_EAGAIN && esp_timer_get_time() < deadline_us);
    return err;
}

static void do_get(char *words) {
    esp_http_client_config_t config = {.event_handler = on_event, .timeout_ms = 2000};
    int times = 1;
    config.url = strtok(words, " ");
    for (char *option = strtok(NULL, " "); option != NULL; option = strtok(NULL, " ")) {
        const int said = take_option(&config, option);
        times = said > 1 ? said : times;
    }
    esp_http_client_handle_t client = esp_http_client_init(&config);
    EXPECT(client != NULL);
    for (int i = 0; i < times; i++) {
        int tls = 0, flags = 0;
        s_body_bytes = 0;
        const esp_err_t err = perform(client);
        const esp_err_t last = esp_http_client_get_and_clear_last_tls_error(client, &tls, &flags);
        printf("get %s status=%d bytes=%d esp=%x tls=%x flags=%x again=%d\n", esp_err_to_name(err),
               esp_http_client_get_status_code(client), s_body_bytes, (unsigned)last, (unsigned)tls,
               (unsigned)flags, s_calls > 1);
        esp_http_client_close(client);
    }
    esp_http_client_cleanup(client);
    esp_tls_free_global_ca_store();
}

int main(void) {
    char line[1024];
    setvbuf(stdout, NULL, _IOLBF, 0);
    ESP_ERROR_CHECK(esp_timer_init());
    while (fgets(line, sizeof line, stdin) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        EXPECT(strncmp(line, "get ", 4) == 0);
        do_get(line + 4);
    }
    return 0;
}
