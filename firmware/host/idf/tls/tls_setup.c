/* SPDX-License-Identifier: Apache-2.0 */
#include "tls_setup.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>

#include "esp_log.h"
#include "sdkconfig.h"
#include "tls_ca_store.h"
#include "tls_error.h"
#include "tls_pem.h"

static const char *TAG = "esp-tls-mbedtls";

static esp_err_t fail_setup(esp_tls_error_handle_t error, esp_err_t err) {
    ESP_LOGE(TAG, "TLS set-up failed: %s", ERR_reason_error_string(ERR_peek_error()));
    tls_error_capture(error, ESP_TLS_ERR_TYPE_MBEDTLS, ERR_GET_REASON(ERR_peek_error()));
    return err;
}

static void limit_protocol(SSL_CTX *ctx) {
    SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
#ifndef CONFIG_MBEDTLS_SSL_PROTO_TLS1_3
    SSL_CTX_set_max_proto_version(ctx, TLS1_2_VERSION);
#endif
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_max_send_fragment(ctx, TLS_RECORD_BYTES);
    // A record without application data must not make a read block for the next one.
    SSL_CTX_clear_mode(ctx, SSL_MODE_AUTO_RETRY);
    SSL_CTX_set_mode(ctx, SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
}

static esp_err_t load_own_certificate(SSL_CTX *ctx, const esp_tls_cfg_t *cfg, esp_tls_error_handle_t error) {
    if (cfg->clientcert_buf == NULL && cfg->clientkey_buf == NULL) {
        return ESP_OK;
    }
    if (cfg->clientcert_buf == NULL || cfg->clientkey_buf == NULL) {
        ESP_LOGE(TAG, "Client certificate and key must be given together");
        return ESP_ERR_MBEDTLS_SSL_CONF_OWN_CERT_FAILED;
    }
    if (tls_pem_use_certificate(ctx, (const char *)cfg->clientcert_buf) != 0) {
        return fail_setup(error, ESP_ERR_MBEDTLS_X509_CRT_PARSE_FAILED);
    }
    if (tls_pem_use_key(ctx, (const char *)cfg->clientkey_buf) != 0) {
        return fail_setup(error, ESP_ERR_MBEDTLS_PK_PARSE_KEY_FAILED);
    }
    return ESP_OK;
}

static esp_err_t load_certificates(SSL_CTX *ctx, const esp_tls_cfg_t *cfg, esp_tls_error_handle_t error) {
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    if (cfg->crt_bundle_attach != NULL) {
        ESP_LOGD(TAG, "Use certificate bundle");
        (void)cfg->crt_bundle_attach(ctx); // ESP-IDF ignores what it returns: verifying fails then
    } else if (cfg->use_global_ca_store) {
        esp_err_t err = tls_ca_store_use(ctx);
        if (err != ESP_OK) {
            return err;
        }
    } else if (cfg->cacert_buf == NULL) {
        ESP_LOGE(TAG, "No server verification option set");
        return ESP_ERR_MBEDTLS_SSL_SETUP_FAILED;
    } else if (tls_pem_add_ca(SSL_CTX_get_cert_store(ctx), (const char *)cfg->cacert_buf) != 0) {
        return fail_setup(error, ESP_ERR_MBEDTLS_X509_CRT_PARSE_FAILED);
    }
    return load_own_certificate(ctx, cfg, error);
}

// The name is checked against the certificate, and sent as SNI where it is a name and not an address.
static bool expect_name(SSL *ssl, const char *name) {
    if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name) == 1) {
        return true;
    }
    ERR_clear_error();
    return X509_VERIFY_PARAM_set1_host(SSL_get0_param(ssl), name, 0) == 1 &&
           SSL_set_tlsext_host_name(ssl, name) == 1;
}

static bool expect_host(SSL *ssl, const esp_tls_cfg_t *cfg, const char *host, size_t host_length) {
#ifndef CONFIG_MBEDTLS_HAVE_TIME_DATE
    X509_VERIFY_PARAM_set_flags(SSL_get0_param(ssl), X509_V_FLAG_NO_CHECK_TIME);
#endif
    if (cfg->skip_common_name) {
        return true;
    }
    char *name = cfg->common_name != NULL ? strdup(cfg->common_name) : strndup(host, host_length);
    bool expected = name != NULL && expect_name(ssl, name);
    free(name);
    return expected;
}

static SSL *new_ssl(SSL_CTX *ctx, const char *host, size_t host_length, const esp_tls_cfg_t *cfg,
                    esp_tls_error_handle_t error, esp_err_t *err) {
    *err = load_certificates(ctx, cfg, error);
    if (*err != ESP_OK) {
        return NULL;
    }
    SSL *ssl = SSL_new(ctx);
    if (ssl != NULL && expect_host(ssl, cfg, host, host_length)) {
        return ssl;
    }
    *err = fail_setup(error, ESP_ERR_MBEDTLS_SSL_SETUP_FAILED);
    SSL_free(ssl);
    return NULL;
}

SSL *tls_setup(const char *host, size_t host_length, const esp_tls_cfg_t *cfg, esp_tls_error_handle_t error,
               esp_err_t *err) {
    ERR_clear_error();
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    if (ctx == NULL) {
        *err = fail_setup(error, ESP_ERR_MBEDTLS_SSL_SETUP_FAILED);
        return NULL;
    }
    limit_protocol(ctx);
    SSL *ssl = new_ssl(ctx, host, host_length, cfg, error, err);
    SSL_CTX_free(ctx); // the SSL keeps it
    return ssl;
}
