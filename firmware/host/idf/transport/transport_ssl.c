// TLS by OpenSSL, set up as ESP-IDF sets up mbedTLS: PEM from memory, certificate always verified, host name
// checked, no session resumed, one record for each write up to CONFIG_MBEDTLS_SSL_OUT_CONTENT_LEN.
#include "esp_transport_ssl.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdlib.h>

#include "esp_log.h"
#include "sdkconfig.h"
#include "ssl_bio.h"
#include "ssl_pem.h"
#include "transport_priv.h"

#ifndef CONFIG_MBEDTLS_SSL_OUT_CONTENT_LEN
#define CONFIG_MBEDTLS_SSL_OUT_CONTENT_LEN 4096
#endif

// mbedTLS's numbers, so that firmware reads the same codes on both.
#define MBEDTLS_X509_CERT_VERIFY_FAILED 0x2700
#define MBEDTLS_SSL_FATAL_ALERT_MESSAGE 0x7780
#define MBEDTLS_SSL_CONN_EOF 0x7280
#define MBEDTLS_SSL_TIMEOUT 0x6800
#define BADCERT_EXPIRED 0x01
#define BADCERT_REVOKED 0x02
#define BADCERT_CN_MISMATCH 0x04
#define BADCERT_NOT_TRUSTED 0x08
#define BADCERT_FUTURE 0x0200

static const char *TAG = "transport_ssl";

typedef struct ssl_transport {
    const char *ca_pem;
    const char *client_cert_pem;
    const char *client_key_pem;
    const char *common_name;
    bool skip_common_name;
    SSL_CTX *ctx;
    SSL *ssl;
} ssl_transport_t;

static int badcert_flags(long verify_result) {
    switch (verify_result) {
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

static int stack_error(int ssl_error, unsigned long queued) {
    if (ssl_error == SSL_ERROR_WANT_READ || ssl_error == SSL_ERROR_WANT_WRITE) {
        return MBEDTLS_SSL_TIMEOUT;
    }
    if (ssl_error != SSL_ERROR_SSL) {
        return MBEDTLS_SSL_CONN_EOF;
    }
    // OpenSSL numbers a received alert 1000 + its description.
    return ERR_GET_REASON(queued) >= 1000 ? MBEDTLS_SSL_FATAL_ALERT_MESSAGE : ERR_GET_REASON(queued);
}

static int fail_setup(esp_transport_handle_t t, esp_err_t error) {
    ESP_LOGE(TAG, "TLS set-up failed: %s", ERR_reason_error_string(ERR_peek_error()));
    return transport_fail(t, error, ERR_GET_REASON(ERR_peek_error()), 0, 0);
}

static int fail_io(esp_transport_handle_t t, esp_err_t error, int ssl_error, int sock_errno) {
    ssl_transport_t *tls = t->context;
    unsigned long queued = ERR_peek_error();
    long verified = SSL_get_verify_result(tls->ssl);
    int code = verified == X509_V_OK ? stack_error(ssl_error, queued) : MBEDTLS_X509_CERT_VERIFY_FAILED;
    ESP_LOGE(TAG, "TLS failed: %s",
             verified == X509_V_OK ? ERR_reason_error_string(queued)
                                   : X509_verify_cert_error_string(verified));
    return transport_fail(t, error, code, badcert_flags(verified), sock_errno);
}

static void limit_protocol(SSL_CTX *ctx) {
    SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
#ifndef CONFIG_MBEDTLS_SSL_PROTO_TLS1_3
    SSL_CTX_set_max_proto_version(ctx, TLS1_2_VERSION);
#endif
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_max_send_fragment(ctx, CONFIG_MBEDTLS_SSL_OUT_CONTENT_LEN);
    // A record without application data must not make a read block for the next one.
    SSL_CTX_clear_mode(ctx, SSL_MODE_AUTO_RETRY);
}

static int load_certificates(esp_transport_handle_t t, SSL_CTX *ctx) {
    ssl_transport_t *tls = t->context;
    if (tls->ca_pem == NULL) {
        ESP_LOGE(TAG, "No server verification option set");
        return transport_fail(t, ESP_ERR_MBEDTLS_SSL_SETUP_FAILED, 0, 0, 0);
    }
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    if (ssl_pem_add_ca(ctx, tls->ca_pem) != 0) {
        return fail_setup(t, ESP_ERR_MBEDTLS_X509_CRT_PARSE_FAILED);
    }
    if ((tls->client_cert_pem == NULL) != (tls->client_key_pem == NULL)) {
        ESP_LOGE(TAG, "Client certificate and key must be given together");
        return transport_fail(t, ESP_ERR_MBEDTLS_SSL_CONF_OWN_CERT_FAILED, 0, 0, 0);
    }
    if (tls->client_cert_pem != NULL && ssl_pem_use_certificate(ctx, tls->client_cert_pem) != 0) {
        return fail_setup(t, ESP_ERR_MBEDTLS_X509_CRT_PARSE_FAILED);
    }
    if (tls->client_key_pem != NULL && ssl_pem_use_key(ctx, tls->client_key_pem) != 0) {
        return fail_setup(t, ESP_ERR_MBEDTLS_PK_PARSE_KEY_FAILED);
    }
    return 0;
}

// The name is checked against the certificate, and sent as SNI where it is a name and not an address.
static int expect_host(SSL *ssl, const ssl_transport_t *tls, const char *host) {
    X509_VERIFY_PARAM *param = SSL_get0_param(ssl);
#ifndef CONFIG_MBEDTLS_HAVE_TIME_DATE
    X509_VERIFY_PARAM_set_flags(param, X509_V_FLAG_NO_CHECK_TIME);
#endif
    if (tls->skip_common_name) {
        return 1;
    }
    const char *name = tls->common_name != NULL ? tls->common_name : host;
    if (X509_VERIFY_PARAM_set1_ip_asc(param, name) == 1) {
        return 1;
    }
    ERR_clear_error();
    return X509_VERIFY_PARAM_set1_host(param, name, 0) == 1 && SSL_set_tlsext_host_name(ssl, name) == 1;
}

static int create_session(esp_transport_handle_t t, const char *host) {
    ssl_transport_t *tls = t->context;
    ERR_clear_error();
    tls->ctx = SSL_CTX_new(TLS_client_method());
    if (tls->ctx == NULL) {
        return fail_setup(t, ESP_ERR_MBEDTLS_SSL_SETUP_FAILED);
    }
    limit_protocol(tls->ctx);
    if (load_certificates(t, tls->ctx) != 0) {
        return -1;
    }
    tls->ssl = SSL_new(tls->ctx);
    BIO *bio = tls->ssl == NULL ? NULL : ssl_bio_new(t->socket);
    if (bio == NULL || !expect_host(tls->ssl, tls, host)) {
        BIO_free(bio);
        return fail_setup(t, ESP_ERR_MBEDTLS_SSL_SETUP_FAILED);
    }
    SSL_set_bio(tls->ssl, bio, bio);
    return 0;
}

static void ssl_close(esp_transport_handle_t t) {
    ssl_transport_t *tls = t->context;
    SSL_free(tls->ssl);
    SSL_CTX_free(tls->ctx);
    tls->ssl = NULL;
    tls->ctx = NULL;
}

static int ssl_connect(esp_transport_handle_t t, const char *host, int timeout_ms) {
    (void)timeout_ms; // the socket's own receive and send time-outs bound the handshake
    if (create_session(t, host) != 0) {
        return -1;
    }
    ssl_transport_t *tls = t->context;
    ERR_clear_error();
    int done = SSL_connect(tls->ssl);
    if (done == 1) {
        return 0;
    }
    return fail_io(t, ESP_ERR_MBEDTLS_SSL_HANDSHAKE_FAILED, SSL_get_error(tls->ssl, done), errno);
}

static int ssl_read(esp_transport_handle_t t, char *buffer, int len) {
    ssl_transport_t *tls = t->context;
    ERR_clear_error();
    int n = SSL_read(tls->ssl, buffer, len);
    int sock_errno = errno;
    atomic_store(&t->buffered, SSL_pending(tls->ssl));
    if (n > 0) {
        return n;
    }
    int ssl_error = SSL_get_error(tls->ssl, n);
    if (ssl_error == SSL_ERROR_WANT_READ) {
        return ERR_TCP_TRANSPORT_CONNECTION_TIMEOUT;
    }
    bool unexpected_eof = ERR_GET_REASON(ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING;
    if (ssl_error == SSL_ERROR_ZERO_RETURN || unexpected_eof) {
        return ERR_TCP_TRANSPORT_CONNECTION_CLOSED_BY_FIN;
    }
    fail_io(t, ESP_ERR_MBEDTLS_SSL_READ_FAILED, ssl_error, sock_errno);
    return ERR_TCP_TRANSPORT_CONNECTION_FAILED;
}

static int ssl_write(esp_transport_handle_t t, const char *buffer, int len) {
    ssl_transport_t *tls = t->context;
    ERR_clear_error();
    int n = SSL_write(tls->ssl, buffer, len);
    return n > 0 ? n : fail_io(t, ESP_ERR_MBEDTLS_SSL_WRITE_FAILED, SSL_get_error(tls->ssl, n), errno);
}

static void ssl_destroy(esp_transport_handle_t t) {
    free(t->context);
}

static const transport_ops_t SSL_OPS = {
    .connect = ssl_connect,
    .read = ssl_read,
    .write = ssl_write,
    .close = ssl_close,
    .destroy = ssl_destroy,
};

esp_transport_handle_t esp_transport_ssl_init(void) {
    ssl_transport_t *tls = calloc(1, sizeof(*tls));
    esp_transport_handle_t t = tls == NULL ? NULL : transport_create(&SSL_OPS, tls);
    if (t == NULL) {
        free(tls);
    }
    return t;
}

static ssl_transport_t *options(esp_transport_handle_t t) {
    return t->context;
}

void esp_transport_ssl_set_cert_data(esp_transport_handle_t t, const char *data, int len) {
    (void)len; // PEM ends with its NUL
    options(t)->ca_pem = data;
}

void esp_transport_ssl_set_client_cert_data(esp_transport_handle_t t, const char *data, int len) {
    (void)len;
    options(t)->client_cert_pem = data;
}

void esp_transport_ssl_set_client_key_data(esp_transport_handle_t t, const char *data, int len) {
    (void)len;
    options(t)->client_key_pem = data;
}

void esp_transport_ssl_skip_common_name_check(esp_transport_handle_t t) {
    options(t)->skip_common_name = true;
}

void esp_transport_ssl_set_common_name(esp_transport_handle_t t, const char *common_name) {
    options(t)->common_name = common_name;
}
