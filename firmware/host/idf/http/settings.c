/* SPDX-License-Identifier: Apache-2.0 */
// From the caller's configuration to a client.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "esp_log.h"
#include "esp_transport_ssl.h"
#include "esp_transport_tcp.h"
#include "http_client_priv.h"

#define HTTP_PORT 80
#define HTTPS_PORT 443
#define REDIRECTS_MAX 10
#define AUTHORIZATIONS_MAX 10
#define TIMEOUT_MS 5000
#define KEEP_ALIVE_S 5
#define KEEP_ALIVE_PROBES 3

static const char *TAG = "HTTP_CLIENT";
static const char *const USER_AGENT = "ESP32 HTTP Client/1.0";

const char *const http_method_names[HTTP_METHOD_MAX] = {
    "GET",     "POST", "PUT",  "PATCH", "DELETE", "HEAD",     "NOTIFY",    "SUBSCRIBE", "UNSUBSCRIBE",
    "OPTIONS", "COPY", "MOVE", "LOCK",  "UNLOCK", "PROPFIND", "PROPPATCH", "MKCOL",     "REPORT",
};

static int or_default(int value, int standard) {
    return value == 0 ? standard : value;
}

static bool copy(char **text, const char *value) {
    return value == NULL || http_text_set(text, value, -1);
}

esp_err_t http_set_basics(esp_http_client_handle_t client, const esp_http_client_config_t *config) {
    http_target_t *target = &client->target;
    bool tls = config->transport_type == HTTP_TRANSPORT_OVER_SSL;
    client->handler = config->event_handler;
    client->user_data = config->user_data;
    client->timeout_ms = or_default(config->timeout_ms, TIMEOUT_MS);
    client->redirects_max = or_default(config->max_redirection_count, REDIRECTS_MAX);
    client->authorizations_max = or_default(config->max_authorization_retries, AUTHORIZATIONS_MAX);
    client->authorizations_max = client->authorizations_max == -1 ? 0 : client->authorizations_max;
    client->disable_auto_redirect = config->disable_auto_redirect;
    client->is_async = config->is_async;
    client->request.buffer_bytes = or_default(config->buffer_size_tx, DEFAULT_HTTP_BUF_SIZE);
    client->response.buffer_bytes = or_default(config->buffer_size, DEFAULT_HTTP_BUF_SIZE);
    client->request.buffer = malloc((size_t)client->request.buffer_bytes);
    client->response.buffer = malloc((size_t)client->response.buffer_bytes);
    target->method = config->method;
    target->auth_type = config->auth_type;
    target->port = or_default(config->port, tls ? HTTPS_PORT : HTTP_PORT);
    bool copied = copy(&target->scheme, tls ? "https" : "http") && copy(&target->host, config->host) &&
                  copy(&target->path, config->path == NULL ? "/" : config->path) &&
                  copy(&target->query, config->query) && copy(&target->username, config->username) &&
                  copy(&target->password, config->password);
    return copied && client->request.buffer != NULL && client->response.buffer != NULL ? ESP_OK
                                                                                       : ESP_ERR_NO_MEM;
}

// With a length it is PEM where the NUL is counted, as Mbed TLS tells them apart.
static bool is_pem(const char *certificate, size_t length) {
    return certificate == NULL || length == 0 || certificate[length - 1] == '\0';
}

// What the host's TLS has not; NULL for nothing.
static const char *lacking(const esp_http_client_config_t *config) {
    if (!is_pem(config->cert_pem, config->cert_len) ||
        !is_pem(config->client_cert_pem, config->client_cert_len) ||
        !is_pem(config->client_key_pem, config->client_key_len)) {
        return "certificates and keys in DER";
    }
    if (config->client_key_password != NULL && config->client_key_password_len > 0) {
        return "client_key_password";
    }
    if (config->tls_version == ESP_HTTP_CLIENT_TLS_VER_TLS_1_3) {
        return "TLS 1.3";
    }
#if CONFIG_ESP_HTTP_CLIENT_ENABLE_HTTPS
    if (config->alpn_protos != NULL) {
        return "alpn_protos";
    }
#endif
    return NULL;
}

static void set_certificates(esp_transport_handle_t ssl, const esp_http_client_config_t *config) {
    if (config->crt_bundle_attach != NULL) {
        esp_transport_ssl_crt_bundle_attach(ssl, config->crt_bundle_attach);
    } else if (config->use_global_ca_store) {
        esp_transport_ssl_enable_global_ca_store(ssl);
    } else {
        esp_transport_ssl_set_cert_data(ssl, config->cert_pem, 0);
    }
    esp_transport_ssl_set_client_cert_data(ssl, config->client_cert_pem, 0);
    esp_transport_ssl_set_client_key_data(ssl, config->client_key_pem, 0);
    esp_transport_ssl_set_common_name(ssl, config->common_name);
    if (config->skip_cert_common_name_check) {
        esp_transport_ssl_skip_common_name_check(ssl);
    }
}

static void set_socket(esp_http_client_handle_t client, esp_transport_handle_t transport,
                       const esp_http_client_config_t *config) {
    const esp_tls_addr_family_t family = config->addr_type == HTTP_ADDR_TYPE_INET    ? ESP_TLS_AF_INET
                                         : config->addr_type == HTTP_ADDR_TYPE_INET6 ? ESP_TLS_AF_INET6
                                                                                     : ESP_TLS_AF_UNSPEC;
    esp_transport_ssl_set_addr_family(transport, family);
    if (config->keep_alive_enable) {
        client->keep_alive = (esp_transport_keep_alive_t){
            .keep_alive_enable = true,
            .keep_alive_idle = or_default(config->keep_alive_idle, KEEP_ALIVE_S),
            .keep_alive_interval = or_default(config->keep_alive_interval, KEEP_ALIVE_S),
            .keep_alive_count = or_default(config->keep_alive_count, KEEP_ALIVE_PROBES),
        };
        esp_transport_tcp_set_keep_alive(transport, &client->keep_alive);
    }
}

static esp_transport_handle_t add_transport(esp_http_client_handle_t client, esp_transport_handle_t transport,
                                            const char *scheme, int port,
                                            const esp_http_client_config_t *config) {
    if (transport != NULL) {
        esp_transport_set_default_port(transport, port);
        esp_transport_list_add(client->transports, transport, scheme);
        set_socket(client, transport, config);
    }
    return transport;
}

esp_err_t http_set_transports(esp_http_client_handle_t client, const esp_http_client_config_t *config) {
    const char *what = lacking(config);
    if (what != NULL) {
        ESP_LOGE(TAG, "%s: a virtual board's TLS has not that", what);
        return ESP_ERR_NOT_SUPPORTED;
    }
    if (config->addr_type != HTTP_ADDR_TYPE_UNSPEC && config->addr_type != HTTP_ADDR_TYPE_INET &&
        config->addr_type != HTTP_ADDR_TYPE_INET6) {
        ESP_LOGE(TAG, "Failed to convert addr type %d", (int)config->addr_type);
        return ESP_ERR_INVALID_ARG;
    }
    client->transports = esp_transport_list_init();
    if (client->transports == NULL ||
        add_transport(client, esp_transport_tcp_init(), "http", HTTP_PORT, config) == NULL) {
        return ESP_ERR_NO_MEM;
    }
#ifdef CONFIG_ESP_HTTP_CLIENT_ENABLE_HTTPS
    esp_transport_handle_t ssl = add_transport(client, esp_transport_ssl_init(), "https", HTTPS_PORT, config);
    if (ssl == NULL) {
        return ESP_ERR_NO_MEM;
    }
    set_certificates(ssl, config);
#endif
#ifdef CONFIG_ESP_TLS_CLIENT_SESSION_TICKETS
    client->ticket = config->save_client_session ? TICKET_NOT_SAVED : TICKET_UNUSED;
#endif
    return ESP_OK;
}

static esp_err_t set_host_header(esp_http_client_handle_t client) {
    const http_target_t *target = &client->target;
    bool is_ipv6 = target->host[0] != '[' && strchr(target->host, ':') != NULL;
    bool is_default = target->port == HTTP_PORT || target->port == HTTPS_PORT;
    char *value = NULL;
    if (asprintf(&value, is_ipv6 ? "[%s]" : "%s", target->host) < 0) {
        return ESP_ERR_NO_MEM;
    }
    char port[16];
    int length = snprintf(port, sizeof(port), ":%d", target->port);
    bool done = is_default || http_text_append(&value, port, (size_t)length);
    esp_err_t err = done ? http_headers_set(&client->request.headers, "Host", value) : ESP_ERR_NO_MEM;
    free(value);
    return err;
}

esp_err_t http_set_target(esp_http_client_handle_t client, const esp_http_client_config_t *config) {
    bool by_parts = config->host != NULL && config->path != NULL;
    if (!by_parts && config->url == NULL) {
        ESP_LOGE(TAG, "config should have either URL or host & path");
        return ESP_ERR_INVALID_ARG;
    }
    if (!by_parts && esp_http_client_set_url(client, config->url) != ESP_OK) {
        ESP_LOGE(TAG, "Failed to set URL");
        return ESP_ERR_INVALID_ARG;
    }
    if (client->target.host == NULL) {
        ESP_LOGE(TAG, "invalid host");
        return ESP_ERR_INVALID_ARG;
    }
    const char *agent = config->user_agent == NULL ? USER_AGENT : config->user_agent;
    esp_err_t err = http_headers_set(&client->request.headers, "User-Agent", agent);
    return err == ESP_OK ? set_host_header(client) : err;
}

static bool take(char **text, const char *url, const struct http_parser_url *parts, int field) {
    const unsigned length = parts->field_data[field].len;
    return length == 0 || http_text_set(text, url + parts->field_data[field].off, (int)length);
}

static bool take_user(http_target_t *target, const char *url, const struct http_parser_url *parts) {
    char *user = NULL;
    if (!take(&user, url, parts, UF_USERINFO) || user == NULL) {
        return parts->field_data[UF_USERINFO].len == 0;
    }
    char *password = strchr(user, ':');
    if (password != NULL) {
        *password++ = '\0';
    }
    bool done = copy(&target->password, password) && copy(&target->username, user);
    free(user);
    return done;
}

// An answer may wait on the connection that is no longer of use.
static void leave(esp_http_client_handle_t client) {
    http_drop_early_body(&client->response);
    esp_http_client_close(client);
}

static esp_err_t take_host(esp_http_client_handle_t client, const char *url,
                           const struct http_parser_url *parts) {
    char *before = client->target.host;
    client->target.host = NULL;
    if (!take(&client->target.host, url, parts, UF_HOST)) {
        client->target.host = before;
        return ESP_ERR_NO_MEM;
    }
    if (client->target.host == NULL) {
        client->target.host = before;
        return ESP_OK;
    }
    bool changed = before != NULL && strcasecmp(before, client->target.host) != 0;
    free(before);
    if (changed) {
        esp_err_t err = http_headers_set(&client->request.headers, "Host", client->target.host);
        if (err != ESP_OK) {
            return err;
        }
        leave(client);
    }
    return ESP_OK;
}

static bool take_scheme_and_port(esp_http_client_handle_t client, const char *url,
                                 const struct http_parser_url *parts) {
    http_target_t *target = &client->target;
    int before = target->port;
    if (!take(&target->scheme, url, parts, UF_SCHEMA)) {
        return false;
    }
    if (parts->field_data[UF_SCHEMA].len > 0 && strcasecmp(target->scheme, "http") == 0) {
        target->port = HTTP_PORT;
    } else if (parts->field_data[UF_SCHEMA].len > 0 && strcasecmp(target->scheme, "https") == 0) {
        target->port = HTTPS_PORT;
    }
    if (parts->field_data[UF_PORT].len > 0) {
        target->port = parts->port;
    }
    if (target->port != before) {
        leave(client);
    }
    return true;
}

esp_err_t esp_http_client_set_url(esp_http_client_handle_t client, const char *url) {
    if (client == NULL || url == NULL) {
        ESP_LOGE(TAG, "client or url must not NULL");
        return ESP_ERR_INVALID_ARG;
    }
    struct http_parser_url parts;
    http_parser_url_init(&parts);
    if (http_parser_parse_url(url, strlen(url), 0, &parts) != 0) {
        ESP_LOGE(TAG, "Error parse url %s", url);
        return ESP_ERR_INVALID_ARG;
    }
    http_target_t *target = &client->target;
    esp_err_t err = take_host(client, url, &parts);
    if (err != ESP_OK) {
        return err;
    }
    free(target->query);
    target->query = NULL;
    bool done = take_scheme_and_port(client, url, &parts) && take_user(target, url, &parts) &&
                http_text_set(&target->path, "/", -1) && take(&target->path, url, &parts, UF_PATH) &&
                take(&target->query, url, &parts, UF_QUERY);
    return done ? ESP_OK : ESP_ERR_NO_MEM;
}

void http_target_free(http_target_t *target) {
    free(target->scheme);
    free(target->host);
    free(target->username);
    free(target->password);
    free(target->path);
    free(target->query);
    memset(target, 0, sizeof(*target));
}
