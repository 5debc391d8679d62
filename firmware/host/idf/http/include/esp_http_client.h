/* SPDX-License-Identifier: Apache-2.0 */
// ESP-IDF's HTTP client on the host's transports: names, values, order of events and return codes are those
// of ESP-IDF v5.5, what is odd in them included. What differs is in docs/explain/host-network.md.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "esp_err.h"
#include "esp_event.h"
#include "freertos/FreeRTOS.h"
#include "sdkconfig.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DEFAULT_HTTP_BUF_SIZE (512)

// On the default event loop come the client's handle, or one of the structures below.
ESP_EVENT_DECLARE_BASE(ESP_HTTP_CLIENT_EVENT);

typedef struct esp_http_client *esp_http_client_handle_t;
typedef struct esp_http_client_event *esp_http_client_event_handle_t;

typedef enum {
    HTTP_EVENT_ERROR = 0, // data: the transport's esp_tls_error_handle_t
    HTTP_EVENT_ON_CONNECTED,
    HTTP_EVENT_HEADERS_SENT,
    HTTP_EVENT_HEADER_SENT = HTTP_EVENT_HEADERS_SENT,
    HTTP_EVENT_ON_HEADER,    // header_key, header_value
    HTTP_EVENT_ON_DATA,      // data, data_len: a piece of the body, chunks decoded
    HTTP_EVENT_ON_FINISH,    // of esp_http_client_perform() only
    HTTP_EVENT_DISCONNECTED, // data: as of HTTP_EVENT_ERROR
    HTTP_EVENT_REDIRECT,     // with disable_auto_redirect
} esp_http_client_event_id_t;

typedef struct esp_http_client_event {
    esp_http_client_event_id_t event_id;
    esp_http_client_handle_t client;
    void *data;
    int data_len;
    void *user_data;
    char *header_key;
    char *header_value;
} esp_http_client_event_t;

typedef struct esp_http_client_on_data {
    esp_http_client_handle_t client;
    int64_t data_process; // bytes of the body so far
} esp_http_client_on_data_t;

typedef struct esp_http_client_redirect_event_data {
    esp_http_client_handle_t client;
    int status_code;
} esp_http_client_redirect_event_data_t;

typedef enum {
    HTTP_TRANSPORT_UNKNOWN = 0x0,
    HTTP_TRANSPORT_OVER_TCP,
    HTTP_TRANSPORT_OVER_SSL,
} esp_http_client_transport_t;

typedef enum {
    ESP_HTTP_CLIENT_TLS_VER_ANY = 0,
    ESP_HTTP_CLIENT_TLS_VER_TLS_1_2 = 0x1,
    ESP_HTTP_CLIENT_TLS_VER_TLS_1_3 = 0x2,
    ESP_HTTP_CLIENT_TLS_VER_MAX,
} esp_http_client_proto_ver_t;

typedef esp_err_t (*http_event_handle_cb)(esp_http_client_event_t *evt);

typedef enum {
    HTTP_METHOD_GET = 0,
    HTTP_METHOD_POST,
    HTTP_METHOD_PUT,
    HTTP_METHOD_PATCH,
    HTTP_METHOD_DELETE,
    HTTP_METHOD_HEAD,
    HTTP_METHOD_NOTIFY,
    HTTP_METHOD_SUBSCRIBE,
    HTTP_METHOD_UNSUBSCRIBE,
    HTTP_METHOD_OPTIONS,
    HTTP_METHOD_COPY,
    HTTP_METHOD_MOVE,
    HTTP_METHOD_LOCK,
    HTTP_METHOD_UNLOCK,
    HTTP_METHOD_PROPFIND,
    HTTP_METHOD_PROPPATCH,
    HTTP_METHOD_MKCOL,
    HTTP_METHOD_REPORT,
    HTTP_METHOD_MAX,
} esp_http_client_method_t;

typedef enum {
    HTTP_AUTH_TYPE_NONE = 0,
    HTTP_AUTH_TYPE_BASIC,  // with CONFIG_ESP_HTTP_CLIENT_ENABLE_BASIC_AUTH after a 401
    HTTP_AUTH_TYPE_DIGEST, // with CONFIG_ESP_HTTP_CLIENT_ENABLE_DIGEST_AUTH
} esp_http_client_auth_type_t;

typedef enum {
    HTTP_ADDR_TYPE_UNSPEC = AF_UNSPEC,
    HTTP_ADDR_TYPE_INET = AF_INET,
    HTTP_ADDR_TYPE_INET6 = AF_INET6,
} esp_http_client_addr_type_t;

// Texts are copied, certificates are not. PEM only: a …_len counts the NUL, or is 0.
typedef struct {
    const char *url; // where host and path are not both given
    const char *host;
    int port; // 0: 80, or 443
    const char *username;
    const char *password;
    esp_http_client_auth_type_t auth_type;
    const char *path;
    const char *query;
    union {
        const char *cert_pem;
        const char *cert_der;
    };
    size_t cert_len;
    union {
        const char *client_cert_pem;
        const char *client_cert_der;
    };
    size_t client_cert_len;
    const char *client_key_pem;
    size_t client_key_len;
    const char *client_key_password; // not on the host
    size_t client_key_password_len;
    esp_http_client_proto_ver_t tls_version;
    const char *user_agent;
    esp_http_client_method_t method;
    int timeout_ms; // of connecting, of each read and write; 0: 5000
    bool disable_auto_redirect;
    int max_redirection_count;     // 0: 10
    int max_authorization_retries; // 0: 10, -1: none
    http_event_handle_cb event_handler;
    esp_http_client_transport_t transport_type;
    int buffer_size;    // 0: DEFAULT_HTTP_BUF_SIZE
    int buffer_size_tx; // of the request's lines; a header that does not fit is not sent
    void *user_data;
    bool is_async;
    bool use_global_ca_store;
    bool skip_cert_common_name_check;
    const char *common_name;
    esp_err_t (*crt_bundle_attach)(void *conf);
    bool keep_alive_enable; // TCP's
    int keep_alive_idle;
    int keep_alive_interval;
    int keep_alive_count;
    struct ifreq *if_name; // not looked at: a virtual board has one interface
#if CONFIG_ESP_HTTP_CLIENT_ENABLE_HTTPS
    const char **alpn_protos; // not on the host
#endif
#if CONFIG_ESP_TLS_CLIENT_SESSION_TICKETS
    bool save_client_session;
#endif
    esp_http_client_addr_type_t addr_type;
} esp_http_client_config_t;

typedef enum {
    HttpStatus_Ok = 200,
    HttpStatus_PartialContent = 206,
    HttpStatus_MultipleChoices = 300,
    HttpStatus_MovedPermanently = 301,
    HttpStatus_Found = 302,
    HttpStatus_SeeOther = 303,
    HttpStatus_NotModified = 304,
    HttpStatus_TemporaryRedirect = 307,
    HttpStatus_PermanentRedirect = 308,
    HttpStatus_BadRequest = 400,
    HttpStatus_Unauthorized = 401,
    HttpStatus_Forbidden = 403,
    HttpStatus_NotFound = 404,
    HttpStatus_RangeNotSatisfiable = 416,
    HttpStatus_InternalError = 500
} HttpStatus_Code;

#define ESP_ERR_HTTP_BASE (0x7000)
#define ESP_ERR_HTTP_MAX_REDIRECT (ESP_ERR_HTTP_BASE + 1)
#define ESP_ERR_HTTP_CONNECT (ESP_ERR_HTTP_BASE + 2)
#define ESP_ERR_HTTP_WRITE_DATA (ESP_ERR_HTTP_BASE + 3)
#define ESP_ERR_HTTP_FETCH_HEADER (ESP_ERR_HTTP_BASE + 4)
#define ESP_ERR_HTTP_INVALID_TRANSPORT (ESP_ERR_HTTP_BASE + 5)
#define ESP_ERR_HTTP_CONNECTING (ESP_ERR_HTTP_BASE + 6)
#define ESP_ERR_HTTP_EAGAIN (ESP_ERR_HTTP_BASE + 7)
#define ESP_ERR_HTTP_CONNECTION_CLOSED (ESP_ERR_HTTP_BASE + 8)
#define ESP_ERR_HTTP_NOT_MODIFIED (ESP_ERR_HTTP_BASE + 9)
#define ESP_ERR_HTTP_RANGE_NOT_SATISFIABLE (ESP_ERR_HTTP_BASE + 10)
#define ESP_ERR_HTTP_READ_TIMEOUT (ESP_ERR_HTTP_BASE + 11)
#define ESP_ERR_HTTP_INCOMPLETE_DATA (ESP_ERR_HTTP_BASE + 12)

// NULL where the configuration has neither a URL nor host and path, or what the host has not.
esp_http_client_handle_t esp_http_client_init(const esp_http_client_config_t *config);
esp_err_t esp_http_client_cleanup(esp_http_client_handle_t client);

// A whole request, redirects and authorization included, in the caller's task. With is_async
// ESP_ERR_HTTP_EAGAIN says to call again.
esp_err_t esp_http_client_perform(esp_http_client_handle_t client);
esp_err_t esp_http_client_cancel_request(esp_http_client_handle_t client);

// The same in steps. write_len -1 sends a chunked body, whose chunks the caller forms.
esp_err_t esp_http_client_open(esp_http_client_handle_t client, int write_len);
int esp_http_client_write(esp_http_client_handle_t client, const char *buffer, int len);
// Content-Length; 0 for none or chunks; ESP_FAIL; -ESP_ERR_HTTP_EAGAIN on time-out.
int64_t esp_http_client_fetch_headers(esp_http_client_handle_t client);
// Bytes; ESP_FAIL; -ESP_ERR_HTTP_EAGAIN when it timed out with none.
int esp_http_client_read(esp_http_client_handle_t client, char *buffer, int len);
int esp_http_client_read_response(esp_http_client_handle_t client, char *buffer, int len);
esp_err_t esp_http_client_flush_response(esp_http_client_handle_t client, int *len);
esp_err_t esp_http_client_close(esp_http_client_handle_t client);
esp_err_t esp_http_client_prepare(esp_http_client_handle_t client);
esp_err_t esp_http_client_request_send(esp_http_client_handle_t client, int write_len);
esp_err_t esp_http_client_clear_response_buffer(esp_http_client_handle_t client);

// A host or port other than before closes the connection. The header Host is then the host without its port,
// and stays as it is where only the port changed.
esp_err_t esp_http_client_set_url(esp_http_client_handle_t client, const char *url);
esp_err_t esp_http_client_get_url(esp_http_client_handle_t client, char *url, const int len);
esp_err_t esp_http_client_set_method(esp_http_client_handle_t client, esp_http_client_method_t method);
esp_err_t esp_http_client_set_timeout_ms(esp_http_client_handle_t client, int timeout_ms);
esp_err_t esp_http_client_set_user_data(esp_http_client_handle_t client, void *data);
esp_err_t esp_http_client_get_user_data(esp_http_client_handle_t client, void **data);
// Not copied.
esp_err_t esp_http_client_set_post_field(esp_http_client_handle_t client, const char *data, int len);
int esp_http_client_get_post_field(esp_http_client_handle_t client, char **data);

// A value of NULL deletes.
esp_err_t esp_http_client_set_header(esp_http_client_handle_t client, const char *key, const char *value);
esp_err_t esp_http_client_get_header(esp_http_client_handle_t client, const char *key, char **value);
esp_err_t esp_http_client_delete_header(esp_http_client_handle_t client, const char *key);
esp_err_t esp_http_client_delete_all_headers(esp_http_client_handle_t client);

esp_err_t esp_http_client_set_username(esp_http_client_handle_t client, const char *username);
esp_err_t esp_http_client_get_username(esp_http_client_handle_t client, char **value);
esp_err_t esp_http_client_set_password(esp_http_client_handle_t client, const char *password);
esp_err_t esp_http_client_get_password(esp_http_client_handle_t client, char **value);
esp_err_t esp_http_client_set_authtype(esp_http_client_handle_t client,
                                       esp_http_client_auth_type_t auth_type);
esp_err_t esp_http_client_set_auth_data(esp_http_client_handle_t client, const char *auth_data, int len);
// For who reads in steps: after a 401, and after a 30x with a Location.
esp_err_t esp_http_client_add_auth(esp_http_client_handle_t client);
esp_err_t esp_http_client_set_redirection(esp_http_client_handle_t client);
esp_err_t esp_http_client_reset_redirect_counter(esp_http_client_handle_t client);

int esp_http_client_get_status_code(esp_http_client_handle_t client);
int64_t esp_http_client_get_content_length(esp_http_client_handle_t client); // -1: none was said
bool esp_http_client_is_chunked_response(esp_http_client_handle_t client);   // or of no said length
esp_err_t esp_http_client_get_chunk_length(esp_http_client_handle_t client, int *len);
bool esp_http_client_is_complete_data_received(esp_http_client_handle_t client);
bool esp_http_client_is_persistent_connection(esp_http_client_handle_t client);
esp_http_client_transport_t esp_http_client_get_transport_type(esp_http_client_handle_t client);
int esp_http_client_get_socket(esp_http_client_handle_t client);
int esp_http_client_get_errno(esp_http_client_handle_t client);
esp_err_t esp_http_client_get_and_clear_last_tls_error(esp_http_client_handle_t client,
                                                       int *esp_tls_error_code, int *esp_tls_flags);

#ifdef __cplusplus
}
#endif
