/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "client_priv.h"
#include "esp_log.h"
#include "esp_mac.h"

static const char *TAG = "mqtt_client";

static int or_default(int value, int fallback) {
    return value > 0 ? value : fallback;
}

// "" counts as not given, as in esp-mqtt.
static char *copy(const char *text) {
    return text == NULL || text[0] == '\0' ? NULL : strdup(text);
}

static char *copy_span(const char *start, size_t length) {
    return length == 0 ? NULL : strndup(start, length);
}

static char *default_client_id(void) {
    uint8_t mac[6] = {0};
    char id[sizeof("ESP32_AABBCC")];
    esp_read_mac(mac, ESP_MAC_WIFI_STA);
    snprintf(id, sizeof(id), "ESP32_%02x%02X%02X", mac[3], mac[4], mac[5]);
    return strdup(id);
}

static const char *scheme_named(const char *name, size_t length) {
    static const char *const schemes[] = {MQTT_OVER_TCP_SCHEME, MQTT_OVER_SSL_SCHEME};
    for (size_t i = 0; i < 2; i++) {
        if (strlen(schemes[i]) == length && strncasecmp(schemes[i], name, length) == 0) {
            return schemes[i];
        }
    }
    return NULL;
}

static void take_user_info(mqtt_settings_t *s, const char *start, size_t length) {
    const char *colon = memchr(start, ':', length);
    size_t name_length = colon == NULL ? length : (size_t)(colon - start);
    free(s->username);
    s->username = copy_span(start, name_length);
    if (colon != NULL) {
        free(s->password);
        s->password = copy_span(colon + 1, length - name_length - 1);
    }
}

// host, host:port or [IPv6]:port
static esp_err_t take_host_and_port(mqtt_settings_t *s, const char *start, size_t length) {
    bool bracketed = length > 0 && start[0] == '[';
    const char *end = start + length;
    const char *host_end = memchr(start, bracketed ? ']' : ':', length);
    if (bracketed && host_end == NULL) {
        return ESP_FAIL;
    }
    const char *rest = host_end == NULL ? end : host_end + (bracketed ? 1 : 0);
    const char *host = start + (bracketed ? 1 : 0);
    free(s->host);
    s->host = copy_span(host, (size_t)((host_end == NULL ? end : host_end) - host));
    if (rest < end) {
        char *parsed_to = NULL;
        long port = strtol(rest + 1, &parsed_to, 10);
        if (*rest != ':' || parsed_to != end || port < 1 || port > 65535) {
            return ESP_FAIL;
        }
        s->port = (int)port;
    }
    return s->host != NULL ? ESP_OK : ESP_FAIL;
}

static esp_err_t take_uri(mqtt_settings_t *s, const char *uri) {
    const char *separator = strstr(uri, "://");
    s->scheme = separator == NULL ? NULL : scheme_named(uri, (size_t)(separator - uri));
    if (s->scheme == NULL) {
        return ESP_FAIL;
    }
    const char *authority = separator + 3;
    size_t length = strcspn(authority, "/?#");
    const char *at = memchr(authority, '@', length);
    if (at != NULL) {
        take_user_info(s, authority, (size_t)(at - authority));
        length -= (size_t)(at + 1 - authority);
        authority = at + 1;
    }
    return take_host_and_port(s, authority, length);
}

static const char *scheme_of(esp_mqtt_transport_t transport) {
    switch (transport) {
    case MQTT_TRANSPORT_OVER_TCP:
        return MQTT_OVER_TCP_SCHEME;
    case MQTT_TRANSPORT_OVER_SSL:
        return MQTT_OVER_SSL_SCHEME;
    default:
        return NULL;
    }
}

static void take_sizes_and_times(mqtt_settings_t *s, const esp_mqtt_client_config_t *c) {
    s->in_buffer_bytes = or_default(c->buffer.size, CONFIG_MQTT_BUFFER_SIZE);
    s->out_buffer_bytes = or_default(c->buffer.out_size, s->in_buffer_bytes);
    s->task_priority = or_default(c->task.priority, CONFIG_MQTT_TASK_PRIORITY);
    s->task_stack_bytes = or_default(c->task.stack_size, CONFIG_MQTT_TASK_STACK_SIZE);
    s->retransmit_timeout_ms =
        or_default(c->session.message_retransmit_timeout, MQTT_DEFAULT_RETRANSMIT_TIMEOUT_MS);
    s->network_timeout_ms = or_default(c->network.timeout_ms, MQTT_DEFAULT_NETWORK_TIMEOUT_MS);
    s->reconnect_timeout_ms = or_default(c->network.reconnect_timeout_ms, MQTT_DEFAULT_RECONNECT_TIMEOUT_MS);
    s->keepalive_s =
        c->session.disable_keepalive ? 0 : or_default(c->session.keepalive, MQTT_DEFAULT_KEEPALIVE_S);
    s->auto_reconnect = !c->network.disable_auto_reconnect;
    s->clean_session = !c->session.disable_clean_session;
    s->outbox_limit_bytes = c->outbox.limit;
}

static void take_credentials(mqtt_settings_t *s, const esp_mqtt_client_config_t *c) {
    s->username = copy(c->credentials.username);
    s->password = copy(c->credentials.authentication.password);
    if (!c->credentials.set_null_client_id) {
        s->client_id =
            c->credentials.client_id != NULL ? copy(c->credentials.client_id) : default_client_id();
    }
    s->ca_pem = c->broker.verification.certificate;
    s->cert_pem = c->credentials.authentication.certificate;
    s->key_pem = c->credentials.authentication.key;
    s->common_name = c->broker.verification.common_name;
    s->skip_common_name = c->broker.verification.skip_cert_common_name_check;
}

static esp_err_t take_address(mqtt_settings_t *s, const esp_mqtt_client_config_t *c) {
    s->host = copy(c->broker.address.hostname);
    s->port = (int)c->broker.address.port;
    s->scheme = scheme_of(c->broker.address.transport);
    if (c->broker.address.uri != NULL && take_uri(s, c->broker.address.uri) != ESP_OK) {
        ESP_LOGE(TAG, "Error parse uri = %s", c->broker.address.uri);
        return ESP_FAIL;
    }
    if (s->host == NULL || s->scheme == NULL) {
        ESP_LOGE(TAG, "No host or no transport in the configuration");
        return ESP_FAIL;
    }
    return ESP_OK;
}

esp_err_t mqtt_settings_apply(mqtt_settings_t *s, const esp_mqtt_client_config_t *c) {
    take_sizes_and_times(s, c);
    take_credentials(s, c);
    if (take_address(s, c) != ESP_OK) {
        return ESP_FAIL;
    }
    if (c->session.protocol_ver != MQTT_PROTOCOL_UNDEFINED &&
        c->session.protocol_ver != MQTT_PROTOCOL_V_3_1_1) {
        ESP_LOGE(TAG, "Only MQTT 3.1.1 is available");
        return ESP_FAIL;
    }
    bool is_tls = strcmp(s->scheme, MQTT_OVER_SSL_SCHEME) == 0;
    if (!is_tls && (s->ca_pem != NULL || s->cert_pem != NULL)) {
        ESP_LOGW(TAG, "SSL related configs set, but the scheme is not SSL: %s", s->scheme);
        return ESP_ERR_INVALID_ARG;
    }
    if (s->port == 0) {
        s->port = is_tls ? MQTT_SSL_DEFAULT_PORT : MQTT_TCP_DEFAULT_PORT;
    }
    return ESP_OK;
}

void mqtt_settings_free(mqtt_settings_t *s) {
    free(s->host);
    free(s->username);
    free(s->password);
    free(s->client_id);
}
