/* SPDX-License-Identifier: Apache-2.0 */
// Each event goes to the client's handler first, then to the default event loop.
#include <inttypes.h>

#include "esp_log.h"
#include "http_client_priv.h"

ESP_EVENT_DEFINE_BASE(ESP_HTTP_CLIENT_EVENT);

#if CONFIG_ESP_HTTP_CLIENT_EVENT_POST_TIMEOUT == -1
#define POST_TICKS portMAX_DELAY
#else
#define POST_TICKS pdMS_TO_TICKS(CONFIG_ESP_HTTP_CLIENT_EVENT_POST_TIMEOUT)
#endif

static const char *TAG = "HTTP_CLIENT";

void http_event(esp_http_client_handle_t client, esp_http_client_event_id_t id, void *data, int length) {
    if (client->handler == NULL) {
        return;
    }
    client->event.event_id = id;
    client->event.client = client;
    client->event.user_data = client->user_data;
    client->event.data = data;
    client->event.data_len = length;
    (void)client->handler(&client->event); // ESP-IDF does not look at what it returns either
}

void http_event_post(int32_t id, const void *data, size_t size) {
    esp_err_t err = esp_event_post(ESP_HTTP_CLIENT_EVENT, id, data, size, POST_TICKS);
    if (err != ESP_OK) {
        ESP_LOGE(TAG, "Failed to post http_client event: %" PRId32 ", error: %s", id, esp_err_to_name(err));
    }
}

void http_event_both(esp_http_client_handle_t client, esp_http_client_event_id_t id) {
    http_event(client, id, NULL, 0);
    http_event_post(id, &client, sizeof(client));
}

void http_event_error(esp_http_client_handle_t client) {
    http_event(client, HTTP_EVENT_ERROR, esp_transport_get_error_handle(client->transport), 0);
    http_event_post(HTTP_EVENT_ERROR, &client, sizeof(client));
}
