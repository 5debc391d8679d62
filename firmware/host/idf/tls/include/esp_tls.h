/* SPDX-License-Identifier: Apache-2.0 */
// ESP-IDF's esp_tls.h on sockets and OpenSSL: the subset for a client. Return values, states and their
// transitions are those of ESP-IDF v5.5 with Mbed TLS, what is odd in them included;
// docs/explain/host-network.md.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "esp_err.h"
#include "esp_tls_errors.h"
#include "mbedtls/ssl.h"
#include "sdkconfig.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum esp_tls_conn_state {
    ESP_TLS_INIT = 0,   // also after a name that was not found or a refused connection, and for plain TCP
    ESP_TLS_CONNECTING, // the socket exists, TCP may not be connected yet
    ESP_TLS_HANDSHAKE,  // TCP is connected, the ClientHello is on its way
    ESP_TLS_FAIL,
    ESP_TLS_DONE,
} esp_tls_conn_state_t;

#ifdef CONFIG_ESP_TLS_CLIENT_SESSION_TICKETS
typedef struct esp_tls_client_session {
    mbedtls_ssl_session saved_session;
} esp_tls_client_session_t;
#endif

typedef enum esp_tls_addr_family {
    ESP_TLS_AF_UNSPEC = 0,
    ESP_TLS_AF_INET,
    ESP_TLS_AF_INET6,
} esp_tls_addr_family_t;

typedef struct tls_keep_alive_cfg {
    bool keep_alive_enable;
    int keep_alive_idle;     // s
    int keep_alive_interval; // s
    int keep_alive_count;
} tls_keep_alive_cfg_t;

// The fields of esp_tls_cfg_t that the firmware may set; another one does not compile. PEM only, with its NUL
// counted in …_bytes; nothing is copied, so it must outlive the connection.
typedef struct esp_tls_cfg {
    union {
        const unsigned char *cacert_buf;
        const unsigned char *cacert_pem_buf;
    };
    union {
        unsigned int cacert_bytes;
        unsigned int cacert_pem_bytes;
    };
    union {
        const unsigned char *clientcert_buf;
        const unsigned char *clientcert_pem_buf;
    };
    union {
        unsigned int clientcert_bytes;
        unsigned int clientcert_pem_bytes;
    };
    union {
        const unsigned char *clientkey_buf;
        const unsigned char *clientkey_pem_buf;
    };
    union {
        unsigned int clientkey_bytes;
        unsigned int clientkey_pem_bytes;
    };
    bool non_block;          // the socket stays non-blocking
    int timeout_ms;          // of TCP connect, of each blocking read and write; <= 0: 10 s
    const char *common_name; // instead of the host name: checked against the certificate and sent as SNI
    bool skip_common_name;   // neither
    tls_keep_alive_cfg_t *keep_alive_cfg;
    esp_err_t (*crt_bundle_attach)(void *conf); // before use_global_ca_store, and that before cacert_…
    bool use_global_ca_store;
    bool is_plain_tcp;
    esp_tls_client_session_t *client_session;
    esp_tls_addr_family_t addr_family;
} esp_tls_cfg_t;

typedef struct esp_tls esp_tls_t;

esp_tls_t *esp_tls_init(void);

// 1 connected, -1 failed, 0 not within timeout_ms.
int esp_tls_conn_new_sync(const char *hostname, int hostlen, int port, const esp_tls_cfg_t *cfg,
                          esp_tls_t *tls);

// One step: 1 connected, 0 call again, -1 failed. With cfg->non_block:
// - the first call resolves the name, which blocks, and starts TCP's connect;
// - in ESP_TLS_CONNECTING it waits up to timeout_ms in select() (0: for ever), then goes on into the
// handshake.
//   Once that timed out it never connects: select() emptied its sets. A refused connection is not noticed
//   there (SO_ERROR is read and dropped) but by the ClientHello that cannot be sent:
//   ESP_ERR_MBEDTLS_SSL_HANDSHAKE_FAILED with MBEDTLS_ERR_NET_SEND_FAILED or …CONN_RESET;
// - in ESP_TLS_HANDSHAKE a call returns at once. cfg->client_session must be NULL from then on, as Mbed TLS
//   takes a session once: a second time fails with -1 and no error code, here as there.
//
// To time and to attribute name, TCP and TLS apart: getaddrinfo(), a socket of one's own, O_NONBLOCK,
// connect() and select(); then esp_tls_set_conn_sockfd(), esp_tls_set_conn_state(ESP_TLS_CONNECTING) and this
// function with cfg->non_block false (with true it would select() on no descriptor). hostname is what is
// checked.
int esp_tls_conn_new_async(const char *hostname, int hostlen, int port, const esp_tls_cfg_t *cfg,
                           esp_tls_t *tls);

// TCP alone. ESP_OK or a code of esp_tls_errors.h; errno in error_handle.
esp_err_t esp_tls_plain_tcp_connect(const char *host, int hostlen, int port, const esp_tls_cfg_t *cfg,
                                    esp_tls_error_handle_t error_handle, int *sockfd);

// Bytes, fewer than datalen where the socket takes no more, ESP_TLS_ERR_SSL_WANT_…, or another negative.
ssize_t esp_tls_conn_write(esp_tls_t *tls, const void *data, size_t datalen);
// Bytes, 0 where the peer closed, ESP_TLS_ERR_SSL_WANT_…, or another negative.
ssize_t esp_tls_conn_read(esp_tls_t *tls, void *data, size_t datalen);
// Closes the socket too, without a close_notify. -1 for NULL.
int esp_tls_conn_destroy(esp_tls_t *tls);
// Decrypted and not yet read: select() does not tell of these.
ssize_t esp_tls_get_bytes_avail(esp_tls_t *tls);

esp_err_t esp_tls_get_conn_sockfd(esp_tls_t *tls, int *sockfd);
esp_err_t esp_tls_set_conn_sockfd(esp_tls_t *tls, int sockfd);
esp_err_t esp_tls_get_conn_state(esp_tls_t *tls, esp_tls_conn_state_t *conn_state);
esp_err_t esp_tls_set_conn_state(esp_tls_t *tls, esp_tls_conn_state_t conn_state);

// Both clear what they return. MBEDTLS code of a failed handshake: 0x2700 certificate, 0x7780 alert of the
// peer, 0x7280 closed, 0x0050 reset, 0x004E not sent, 0x7200 no TLS record.
esp_err_t esp_tls_get_and_clear_last_error(esp_tls_error_handle_t h, int *esp_tls_code, int *esp_tls_flags);
esp_err_t esp_tls_get_and_clear_error_type(esp_tls_error_handle_t h, esp_tls_error_type_t err_type,
                                           int *error_code);
esp_err_t esp_tls_get_error_handle(esp_tls_t *tls, esp_tls_error_handle_t *error_handle);

// Certificates of authorities for all connections with cfg->use_global_ca_store; each call adds to them.
esp_err_t esp_tls_init_global_ca_store(void);
esp_err_t esp_tls_set_global_ca_store(const unsigned char *cacert_pem_buf,
                                      const unsigned int cacert_pem_bytes);
void esp_tls_free_global_ca_store(void);

#ifdef CONFIG_ESP_TLS_CLIENT_SESSION_TICKETS
// What the next connection to the same server may resume (ticket or session id, TLS 1.2), as
// cfg->client_session. Once a connection: a second call returns NULL, as does one before ESP_TLS_DONE.
//
// No call tells whether the server resumed. The server knows; of TLS 1.2 it also shows in the saved session
// that this connection leads to: saved_session.MBEDTLS_PRIVATE(master) is that of the session offered (RFC
// 5246 F.1.4).
esp_tls_client_session_t *esp_tls_get_client_session(esp_tls_t *tls);
void esp_tls_free_client_session(esp_tls_client_session_t *client_session);
#endif

#ifdef __cplusplus
}
#endif
