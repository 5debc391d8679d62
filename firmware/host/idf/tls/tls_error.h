/* SPDX-License-Identifier: Apache-2.0 */
// OpenSSL's errors by Mbed TLS's numbers, so that firmware reads the same codes on both; and the error
// handle.
#pragma once

#include <openssl/ssl.h>

#include "esp_tls_errors.h"

#define MBEDTLS_ERR_NET_RECV_FAILED (-0x004C)
#define MBEDTLS_ERR_NET_SEND_FAILED (-0x004E)
#define MBEDTLS_ERR_NET_CONN_RESET (-0x0050)
#define MBEDTLS_ERR_X509_CERT_VERIFY_FAILED (-0x2700)
#define MBEDTLS_ERR_SSL_BAD_PROTOCOL_VERSION (-0x6E80)
#define MBEDTLS_ERR_SSL_INVALID_MAC (-0x7180)
#define MBEDTLS_ERR_SSL_INVALID_RECORD (-0x7200)
#define MBEDTLS_ERR_SSL_CONN_EOF (-0x7280)
#define MBEDTLS_ERR_SSL_DECODE_ERROR (-0x7300)
#define MBEDTLS_ERR_SSL_UNEXPECTED_MESSAGE (-0x7700)
#define MBEDTLS_ERR_SSL_FATAL_ALERT_MESSAGE (-0x7780)

// What an OpenSSL call on `ssl` that returned `result` comes to: 0 where the peer closed, else negative.
// `sock_errno` is errno right after the call.
int tls_error_code(const SSL *ssl, int result, int sock_errno);
// MBEDTLS_X509_BADCERT_* bits of what was wrong with the peer's certificate, 0 for nothing.
int tls_error_certificate_flags(const SSL *ssl);
// OpenSSL's own words for the last error.
const char *tls_error_text(const SSL *ssl);

// Keep `code` in the handle by its type; nothing without a handle.
void tls_error_capture(esp_tls_error_handle_t handle, esp_tls_error_type_t type, int code);
esp_tls_error_handle_t tls_error_handle_create(void);
void tls_error_handle_delete(esp_tls_error_handle_t handle);
