/* SPDX-License-Identifier: Apache-2.0 */
#include "client_priv.h"
#include "esp_log.h"
#include "esp_random.h"
#include "esp_transport_ssl.h"
#include "esp_transport_tcp.h"

static const char *TAG = "mqtt_client";

// Each connection starts from a fresh list, so a transport never carries anything over from the last one.
static esp_err_t create_transports(esp_mqtt_client_handle_t client) {
    esp_transport_list_destroy(client->transports);
    client->transport = NULL;
    client->transports = esp_transport_list_init();
    esp_transport_handle_t tcp = esp_transport_tcp_init();
    esp_transport_handle_t ssl = esp_transport_ssl_init();
    if (client->transports == NULL || tcp == NULL || ssl == NULL) {
        esp_transport_destroy(tcp);
        esp_transport_destroy(ssl);
        return ESP_ERR_NO_MEM;
    }
    esp_transport_set_default_port(tcp, MQTT_TCP_DEFAULT_PORT);
    esp_transport_set_default_port(ssl, MQTT_SSL_DEFAULT_PORT);
    esp_transport_list_add(client->transports, tcp, MQTT_OVER_TCP_SCHEME);
    esp_transport_list_add(client->transports, ssl, MQTT_OVER_SSL_SCHEME);
    client->transport = esp_transport_list_get_transport(client->transports, client->settings.scheme);
    return ESP_OK;
}

static void configure_tls(esp_mqtt_client_handle_t client) {
    esp_transport_handle_t ssl = esp_transport_list_get_transport(client->transports, MQTT_OVER_SSL_SCHEME);
    const mqtt_settings_t *s = &client->settings;
    esp_transport_ssl_set_cert_data(ssl, s->ca_pem, 0);
    esp_transport_ssl_set_client_cert_data(ssl, s->cert_pem, 0);
    esp_transport_ssl_set_client_key_data(ssl, s->key_pem, 0);
    if (s->common_name != NULL) {
        esp_transport_ssl_set_common_name(ssl, s->common_name);
    }
    if (s->skip_common_name) {
        esp_transport_ssl_skip_common_name_check(ssl);
    }
}

esp_err_t mqtt_write(esp_mqtt_client_handle_t client, const uint8_t *data, size_t length) {
    size_t written = 0;
    while (written < length) {
        int n = esp_transport_write(client->transport, (const char *)data + written, (int)(length - written),
                                    client->settings.network_timeout_ms);
        if (n < 0) {
            ESP_LOGE(TAG, "Writing failed");
            mqtt_dispatch_transport_error(client);
            return ESP_FAIL;
        }
        if (n == 0) {
            ESP_LOGE(TAG, "Writing didn't complete in specified timeout");
            return ESP_ERR_TIMEOUT;
        }
        written += (size_t)n;
    }
    return ESP_OK;
}

esp_err_t mqtt_write_frame(esp_mqtt_client_handle_t client, const mqtt_frame_t *frame) {
    if (frame->length == 0) {
        ESP_LOGE(TAG, "Message cannot be created");
        return ESP_FAIL;
    }
    return mqtt_write(client, frame->data, frame->length);
}

uint16_t mqtt_next_id(esp_mqtt_client_handle_t client) {
    do {
#ifdef CONFIG_MQTT_MSG_ID_INCREMENTAL
        client->last_id++;
#else
        client->last_id = (uint16_t)(esp_random() % 65535);
#endif
    } while (client->last_id == 0);
    return client->last_id;
}

static esp_err_t send_connect(esp_mqtt_client_handle_t client) {
    const mqtt_settings_t *s = &client->settings;
    mqtt_connect_t connect = {
        .client_id = s->client_id,
        .username = s->username,
        .password = s->password,
        .keepalive_s = (uint16_t)s->keepalive_s,
        .clean_session = s->clean_session,
    };
    mqtt_frame_t frame = mqtt_encode_connect(&client->out, &connect);
    return mqtt_write_frame(client, &frame);
}

static esp_err_t refused(esp_mqtt_client_handle_t client, uint8_t code) {
    ESP_LOGW(TAG, "Connection refused, return code %u", code);
    client->error = (esp_mqtt_error_codes_t){
        .error_type = MQTT_ERROR_TYPE_CONNECTION_REFUSED,
        .connect_return_code = (esp_mqtt_connect_return_code_t)code,
    };
    mqtt_dispatch_id(client, MQTT_EVENT_ERROR, 0);
    return ESP_FAIL;
}

static esp_err_t await_connack(esp_mqtt_client_handle_t client, bool *session_present) {
    mqtt_receive_reset(client);
    mqtt_receive_t received = mqtt_receive(client, client->settings.network_timeout_ms);
    uint8_t code = 0;
    if (received != MQTT_RECEIVED_PACKET || mqtt_type_of(client->in.bytes) != MQTT_CONNACK ||
        !mqtt_decode_connack(client->in.bytes, client->in.have, session_present, &code)) {
        ESP_LOGE(TAG, "No valid CONNACK");
        return ESP_FAIL;
    }
    mqtt_receive_reset(client);
    return code == MQTT_CONNECTION_ACCEPTED ? ESP_OK : refused(client, code);
}

static void connected(esp_mqtt_client_handle_t client, bool session_present) {
    client->waiting_for_pingresp = false;
    client->state = MQTT_STATE_CONNECTED;
    esp_mqtt_event_t event = {.event_id = MQTT_EVENT_CONNECTED, .session_present = session_present};
    mqtt_dispatch(client, &event);
    client->keepalive_ms = mqtt_now_ms();
}

esp_err_t mqtt_connection_open(esp_mqtt_client_handle_t client) {
    if (create_transports(client) != ESP_OK) {
        ESP_LOGE(TAG, "Failed to create transport list");
        return ESP_ERR_NO_MEM;
    }
    configure_tls(client);
    mqtt_dispatch_id(client, MQTT_EVENT_BEFORE_CONNECT, 0);
    const mqtt_settings_t *s = &client->settings;
    if (esp_transport_connect(client->transport, s->host, s->port, s->network_timeout_ms) < 0) {
        ESP_LOGE(TAG, "Error transport connect");
        mqtt_dispatch_transport_error(client);
        return ESP_FAIL;
    }
    bool session_present = false;
    if (send_connect(client) != ESP_OK || await_connack(client, &session_present) != ESP_OK) {
        ESP_LOGE(TAG, "MQTT connect failed");
        return ESP_FAIL;
    }
    connected(client, session_present);
    return ESP_OK;
}

void mqtt_connection_abort(esp_mqtt_client_handle_t client) {
    mqtt_lock(client);
    esp_transport_close(client->transport);
    client->wait_ms = client->settings.reconnect_timeout_ms;
    client->reconnect_ms = mqtt_now_ms();
    client->waiting_for_pingresp = false;
    client->state = MQTT_STATE_WAIT_RECONNECT;
    mqtt_dispatch_id(client, MQTT_EVENT_DISCONNECTED, 0);
    mqtt_unlock(client);
}
