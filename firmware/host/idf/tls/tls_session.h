/* SPDX-License-Identifier: Apache-2.0 */
// A TLS client session by OpenSSL with the rules, the limits and the return values of Mbed TLS as esp-tls
// sets it up: certificate always verified, host name checked, one record a write of up to
// CONFIG_MBEDTLS_SSL_OUT_CONTENT_LEN. What esp_tls.h and the TLS transport stand on.
#pragma once

#include "esp_tls.h"
#include "tls_bio.h"

typedef struct tls_session tls_session_t;

// Codes go to `error`. NULL where it cannot be set up; *err says why. `cfg` is read here only.
tls_session_t *tls_session_create(const char *host, size_t host_length, const esp_tls_cfg_t *cfg, tls_io_t io,
                                  esp_tls_error_handle_t error, esp_err_t *err);
void tls_session_delete(tls_session_t *session); // sends no close_notify

// Before the handshake, once. False where it was done already, as mbedtls_ssl_set_session().
bool tls_session_resume(tls_session_t *session, const esp_tls_client_session_t *saved);
// 0 done, ESP_TLS_ERR_SSL_WANT_… to be called again, another negative: failed.
int tls_session_handshake(tls_session_t *session);
// Bytes; of a read 0 where the peer closed; ESP_TLS_ERR_SSL_WANT_…, or another negative.
ssize_t tls_session_read(tls_session_t *session, void *buffer, size_t len);
ssize_t tls_session_write(tls_session_t *session, const void *data, size_t len);
size_t tls_session_bytes_available(const tls_session_t *session);

// NULL before the handshake is done and from the second call on.
esp_tls_client_session_t *tls_session_save(tls_session_t *session);
