/* SPDX-License-Identifier: Apache-2.0 */
#include "tls_error.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509_vfy.h>
#include <stdlib.h>
#include <string.h>

#include "esp_tls.h"

#define BADCERT_EXPIRED 0x01
#define BADCERT_REVOKED 0x02
#define BADCERT_CN_MISMATCH 0x04
#define BADCERT_NOT_TRUSTED 0x08
#define BADCERT_FUTURE 0x0200

// OpenSSL numbers a received alert 1000 + its description.
#define FIRST_ALERT_REASON 1000

typedef struct {
    struct esp_tls_last_error public; // first: the handle is a pointer to it
    int sock_errno;
} error_storage_t;

int tls_error_certificate_flags(const SSL *ssl) {
    switch (SSL_get_verify_result(ssl)) {
    case X509_V_OK:
        return 0;
    case X509_V_ERR_CERT_HAS_EXPIRED:
        return BADCERT_EXPIRED;
    case X509_V_ERR_CERT_NOT_YET_VALID:
        return BADCERT_FUTURE;
    case X509_V_ERR_CERT_REVOKED:
        return BADCERT_REVOKED;
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        return BADCERT_CN_MISMATCH;
    default:
        return BADCERT_NOT_TRUSTED;
    }
}

static int protocol_code(int reason) {
    if (reason >= FIRST_ALERT_REASON) {
        return MBEDTLS_ERR_SSL_FATAL_ALERT_MESSAGE;
    }
    switch (reason) {
    case SSL_R_UNEXPECTED_EOF_WHILE_READING:
        return MBEDTLS_ERR_SSL_CONN_EOF;
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_WRONG_SSL_VERSION:
    case SSL_R_BAD_RECORD_TYPE:
    case SSL_R_PACKET_LENGTH_TOO_LONG:
    case SSL_R_HTTP_REQUEST:
        return MBEDTLS_ERR_SSL_INVALID_RECORD;
    case SSL_R_DECRYPTION_FAILED_OR_BAD_RECORD_MAC:
        return MBEDTLS_ERR_SSL_INVALID_MAC;
    case SSL_R_UNSUPPORTED_PROTOCOL:
        return MBEDTLS_ERR_SSL_BAD_PROTOCOL_VERSION;
    case SSL_R_UNEXPECTED_MESSAGE:
        return MBEDTLS_ERR_SSL_UNEXPECTED_MESSAGE;
    case SSL_R_LENGTH_MISMATCH:
    case SSL_R_BAD_LENGTH:
        return MBEDTLS_ERR_SSL_DECODE_ERROR;
    default:
        return -reason;
    }
}

static int net_code(const SSL *ssl, int sock_errno) {
    if (sock_errno == EPIPE || sock_errno == ECONNRESET) {
        return MBEDTLS_ERR_NET_CONN_RESET;
    }
    return SSL_want_write(ssl) ? MBEDTLS_ERR_NET_SEND_FAILED : MBEDTLS_ERR_NET_RECV_FAILED;
}

int tls_error_code(const SSL *ssl, int result, int sock_errno) {
    switch (SSL_get_error(ssl, result)) {
    case SSL_ERROR_ZERO_RETURN:
        return 0;
    case SSL_ERROR_WANT_READ:
        return ESP_TLS_ERR_SSL_WANT_READ;
    case SSL_ERROR_WANT_WRITE:
        return ESP_TLS_ERR_SSL_WANT_WRITE;
    case SSL_ERROR_SYSCALL:
        return net_code(ssl, sock_errno);
    default:
        break;
    }
    if (tls_error_certificate_flags(ssl) != 0) {
        return MBEDTLS_ERR_X509_CERT_VERIFY_FAILED;
    }
    return protocol_code(ERR_GET_REASON(ERR_peek_error()));
}

const char *tls_error_text(const SSL *ssl) {
    long verified = SSL_get_verify_result(ssl);
    if (verified != X509_V_OK) {
        return X509_verify_cert_error_string(verified);
    }
    const char *reason = ERR_reason_error_string(ERR_peek_error());
    return reason != NULL ? reason : strerror(errno);
}

esp_tls_error_handle_t tls_error_handle_create(void) {
    error_storage_t *storage = calloc(1, sizeof(*storage));
    return storage == NULL ? NULL : &storage->public;
}

void tls_error_handle_delete(esp_tls_error_handle_t handle) {
    free((error_storage_t *)(void *)handle);
}

static int *place_of(esp_tls_error_handle_t handle, esp_tls_error_type_t type) {
    switch (type) {
    case ESP_TLS_ERR_TYPE_ESP:
        return &handle->last_error;
    case ESP_TLS_ERR_TYPE_MBEDTLS:
    case ESP_TLS_ERR_TYPE_WOLFSSL:
        return &handle->esp_tls_error_code;
    case ESP_TLS_ERR_TYPE_MBEDTLS_CERT_FLAGS:
    case ESP_TLS_ERR_TYPE_WOLFSSL_CERT_FLAGS:
        return &handle->esp_tls_flags;
    case ESP_TLS_ERR_TYPE_SYSTEM:
        return &((error_storage_t *)(void *)handle)->sock_errno;
    default:
        return NULL;
    }
}

void tls_error_capture(esp_tls_error_handle_t handle, esp_tls_error_type_t type, int code) {
    int *place = handle == NULL ? NULL : place_of(handle, type);
    if (place != NULL) {
        *place = code;
    }
}

esp_err_t esp_tls_get_and_clear_error_type(esp_tls_error_handle_t h, esp_tls_error_type_t err_type,
                                           int *error_code) {
    int *place = h == NULL || error_code == NULL ? NULL : place_of(h, err_type);
    if (place == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    *error_code = *place;
    *place = 0;
    return ESP_OK;
}

esp_err_t esp_tls_get_and_clear_last_error(esp_tls_error_handle_t h, int *esp_tls_code, int *esp_tls_flags) {
    if (h == NULL) {
        return ESP_ERR_INVALID_STATE;
    }
    esp_err_t last = h->last_error;
    if (esp_tls_code != NULL) {
        *esp_tls_code = h->esp_tls_error_code;
    }
    if (esp_tls_flags != NULL) {
        *esp_tls_flags = h->esp_tls_flags;
    }
    *h = (struct esp_tls_last_error){0};
    return last;
}
