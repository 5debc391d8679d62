/* SPDX-License-Identifier: Apache-2.0 */
// ESP-IDF's esp_tls_errors.h: names and values as in ESP-IDF v5.5 with Mbed TLS.
#pragma once

#include "esp_err.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ESP_ERR_ESP_TLS_BASE 0x8000
#define ESP_ERR_ESP_TLS_CANNOT_RESOLVE_HOSTNAME (ESP_ERR_ESP_TLS_BASE + 0x01)
#define ESP_ERR_ESP_TLS_CANNOT_CREATE_SOCKET (ESP_ERR_ESP_TLS_BASE + 0x02)
#define ESP_ERR_ESP_TLS_UNSUPPORTED_PROTOCOL_FAMILY (ESP_ERR_ESP_TLS_BASE + 0x03)
#define ESP_ERR_ESP_TLS_FAILED_CONNECT_TO_HOST (ESP_ERR_ESP_TLS_BASE + 0x04)
#define ESP_ERR_ESP_TLS_SOCKET_SETOPT_FAILED (ESP_ERR_ESP_TLS_BASE + 0x05)
#define ESP_ERR_ESP_TLS_CONNECTION_TIMEOUT (ESP_ERR_ESP_TLS_BASE + 0x06)
#define ESP_ERR_ESP_TLS_TCP_CLOSED_FIN (ESP_ERR_ESP_TLS_BASE + 0x08)
#define ESP_ERR_MBEDTLS_CTR_DRBG_SEED_FAILED (ESP_ERR_ESP_TLS_BASE + 0x11)
#define ESP_ERR_MBEDTLS_SSL_SET_HOSTNAME_FAILED (ESP_ERR_ESP_TLS_BASE + 0x12)
#define ESP_ERR_MBEDTLS_SSL_CONFIG_DEFAULTS_FAILED (ESP_ERR_ESP_TLS_BASE + 0x13)
#define ESP_ERR_MBEDTLS_X509_CRT_PARSE_FAILED (ESP_ERR_ESP_TLS_BASE + 0x15)
#define ESP_ERR_MBEDTLS_SSL_CONF_OWN_CERT_FAILED (ESP_ERR_ESP_TLS_BASE + 0x16)
#define ESP_ERR_MBEDTLS_SSL_SETUP_FAILED (ESP_ERR_ESP_TLS_BASE + 0x17)
#define ESP_ERR_MBEDTLS_SSL_WRITE_FAILED (ESP_ERR_ESP_TLS_BASE + 0x18)
#define ESP_ERR_MBEDTLS_PK_PARSE_KEY_FAILED (ESP_ERR_ESP_TLS_BASE + 0x19)
#define ESP_ERR_MBEDTLS_SSL_HANDSHAKE_FAILED (ESP_ERR_ESP_TLS_BASE + 0x1A)
#define ESP_ERR_MBEDTLS_SSL_READ_FAILED (ESP_ERR_ESP_TLS_BASE + 0x1D)

// What a read or a write returns when it has to be called again: Mbed TLS's values.
#define ESP_TLS_ERR_SSL_WANT_READ (-0x6900)
#define ESP_TLS_ERR_SSL_WANT_WRITE (-0x6880)
#define ESP_TLS_ERR_SSL_TIMEOUT (-0x6800)

typedef enum {
    ESP_TLS_ERR_TYPE_UNKNOWN = 0,
    ESP_TLS_ERR_TYPE_SYSTEM,             // errno
    ESP_TLS_ERR_TYPE_MBEDTLS,            // as Mbed TLS would number it, positive
    ESP_TLS_ERR_TYPE_MBEDTLS_CERT_FLAGS, // MBEDTLS_X509_BADCERT_* bits
    ESP_TLS_ERR_TYPE_ESP,                // one of the codes above
    ESP_TLS_ERR_TYPE_WOLFSSL,
    ESP_TLS_ERR_TYPE_WOLFSSL_CERT_FLAGS,
    ESP_TLS_ERR_TYPE_MAX,
} esp_tls_error_type_t;

typedef struct esp_tls_last_error {
    esp_err_t last_error;   // one of the codes above, 0 when there was none
    int esp_tls_error_code; // the TLS library's own code, given as Mbed TLS would (positive)
    int esp_tls_flags;      // certificate verification flags, Mbed TLS's MBEDTLS_X509_BADCERT_* bits
} esp_tls_last_error_t;

typedef struct esp_tls_last_error *esp_tls_error_handle_t;

#ifdef __cplusplus
}
#endif
