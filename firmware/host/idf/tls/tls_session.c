/* SPDX-License-Identifier: Apache-2.0 */
#include "tls_session.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdlib.h>

#include "esp_log.h"
#include "tls_error.h"
#include "tls_setup.h"

static const char *TAG = "esp-tls-mbedtls";

struct tls_session {
    SSL *ssl;
    tls_io_t io;
    esp_tls_error_handle_t error;
    bool session_given;
    bool session_saved;
};

tls_session_t *tls_session_create(const char *host, size_t host_length, const esp_tls_cfg_t *cfg, tls_io_t io,
                                  esp_tls_error_handle_t error, esp_err_t *err) {
    *err = ESP_ERR_NO_MEM;
    tls_session_t *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        return NULL;
    }
    s->io = io;
    s->error = error;
    BIO *bio = tls_bio_new(&s->io);
    s->ssl = bio == NULL ? NULL : tls_setup(host, host_length, cfg, error, err);
    if (s->ssl == NULL) {
        BIO_free(bio);
        free(s);
        return NULL;
    }
    SSL_set_bio(s->ssl, bio, bio);
    SSL_set_connect_state(s->ssl);
    return s;
}

void tls_session_delete(tls_session_t *session) {
    if (session != NULL) {
        SSL_free(session->ssl);
        free(session);
    }
}

bool tls_session_resume(tls_session_t *session, const esp_tls_client_session_t *saved) {
    if (session->session_given) {
        return false;
    }
    session->session_given = true;
    // A copy: OpenSSL takes a session for spoilt once its connection ended without a close_notify.
    SSL_SESSION *own = SSL_SESSION_dup(saved->saved_session.openssl);
    bool set = own != NULL && SSL_set_session(session->ssl, own) == 1;
    SSL_SESSION_free(own);
    return set;
}

static void capture_failure(tls_session_t *session, int code, esp_err_t err) {
    ESP_LOGE(TAG, "TLS failed: -0x%04X, %s", (unsigned)-code, tls_error_text(session->ssl));
    tls_error_capture(session->error, ESP_TLS_ERR_TYPE_MBEDTLS, -code);
    tls_error_capture(session->error, ESP_TLS_ERR_TYPE_ESP, err);
    tls_error_capture(session->error, ESP_TLS_ERR_TYPE_MBEDTLS_CERT_FLAGS,
                      tls_error_certificate_flags(session->ssl));
}

static bool is_final(int code) {
    return code < 0 && code != ESP_TLS_ERR_SSL_WANT_READ && code != ESP_TLS_ERR_SSL_WANT_WRITE;
}

int tls_session_handshake(tls_session_t *session) {
    ERR_clear_error();
    errno = 0;
    int result = SSL_do_handshake(session->ssl);
    if (result == 1) {
        return 0;
    }
    int code = tls_error_code(session->ssl, result, errno);
    code = code == 0 ? MBEDTLS_ERR_SSL_CONN_EOF : code;
    if (is_final(code)) {
        capture_failure(session, code, ESP_ERR_MBEDTLS_SSL_HANDSHAKE_FAILED);
    }
    return code;
}

ssize_t tls_session_read(tls_session_t *session, void *buffer, size_t len) {
    ERR_clear_error();
    errno = 0;
    int n = SSL_read(session->ssl, buffer, (int)len);
    if (n > 0) {
        return n;
    }
    int code = tls_error_code(session->ssl, n, errno);
    if (code == MBEDTLS_ERR_SSL_CONN_EOF) {
        return 0; // as mbedtls_ssl_read(): an end without close_notify is an end
    }
    if (is_final(code)) {
        capture_failure(session, code, ESP_ERR_MBEDTLS_SSL_READ_FAILED);
    }
    return code;
}

ssize_t tls_session_write(tls_session_t *session, const void *data, size_t len) {
    size_t written = 0;
    while (written < len) {
        size_t left = len - written;
        size_t record = left > TLS_RECORD_BYTES ? TLS_RECORD_BYTES : left;
        ERR_clear_error();
        errno = 0;
        int n = SSL_write(session->ssl, (const char *)data + written, (int)record);
        if (n <= 0) {
            int code = tls_error_code(session->ssl, n, errno);
            if (is_final(code)) {
                capture_failure(session, code, ESP_ERR_MBEDTLS_SSL_WRITE_FAILED);
                return code;
            }
            return written > 0 ? (ssize_t)written : code;
        }
        written += (size_t)n;
    }
    return (ssize_t)written;
}

size_t tls_session_bytes_available(const tls_session_t *session) {
    return (size_t)SSL_pending(session->ssl);
}

esp_tls_client_session_t *tls_session_save(tls_session_t *session) {
    if (!SSL_is_init_finished(session->ssl) || session->session_saved) {
        return NULL;
    }
    esp_tls_client_session_t *client_session = calloc(1, sizeof(*client_session));
    SSL_SESSION *saved = client_session == NULL ? NULL : SSL_SESSION_dup(SSL_get0_session(session->ssl));
    if (saved == NULL) {
        free(client_session);
        return NULL;
    }
    session->session_saved = true;
    mbedtls_ssl_session *exported = &client_session->saved_session;
    exported->openssl = saved;
    SSL_SESSION_get_master_key(saved, exported->MBEDTLS_PRIVATE(master),
                               sizeof(exported->MBEDTLS_PRIVATE(master)));
    return client_session;
}

void esp_tls_free_client_session(esp_tls_client_session_t *client_session) {
    if (client_session != NULL) {
        SSL_SESSION_free(client_session->saved_session.openssl);
        free(client_session);
    }
}
