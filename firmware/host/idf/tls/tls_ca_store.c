/* SPDX-License-Identifier: Apache-2.0 */
#include "tls_ca_store.h"

#include <openssl/err.h>
#include <string.h>

#include "esp_crt_bundle.h"
#include "esp_log.h"
#include "esp_tls.h"
#include "tls_pem.h"

static const char *TAG = "esp-tls-mbedtls";

static X509_STORE *s_store;

esp_err_t esp_tls_init_global_ca_store(void) {
    if (s_store == NULL) {
        s_store = X509_STORE_new();
    }
    return s_store == NULL ? ESP_ERR_NO_MEM : ESP_OK;
}

esp_err_t esp_tls_set_global_ca_store(const unsigned char *cacert_pem_buf,
                                      const unsigned int cacert_pem_bytes) {
    if (cacert_pem_buf == NULL) {
        ESP_LOGE(TAG, "cacert_pem_buf is null");
        return ESP_ERR_INVALID_ARG;
    }
    esp_err_t err = esp_tls_init_global_ca_store();
    if (err != ESP_OK) {
        return err;
    }
    char *pem = strndup((const char *)cacert_pem_buf, cacert_pem_bytes);
    int added = pem == NULL ? -1 : tls_pem_add_ca(s_store, pem);
    free(pem);
    if (added != 0) {
        ESP_LOGE(TAG, "no certificate in PEM: %s", ERR_reason_error_string(ERR_peek_last_error()));
        esp_tls_free_global_ca_store();
        return ESP_FAIL;
    }
    return ESP_OK;
}

void esp_tls_free_global_ca_store(void) {
    X509_STORE_free(s_store);
    s_store = NULL;
}

esp_err_t tls_ca_store_use(SSL_CTX *ctx) {
    if (s_store == NULL) {
        ESP_LOGE(TAG, "global_cacert is NULL");
        return ESP_ERR_INVALID_STATE;
    }
    SSL_CTX_set1_cert_store(ctx, s_store);
    return ESP_OK;
}

esp_err_t esp_crt_bundle_attach(void *conf) {
    return SSL_CTX_set_default_verify_paths(conf) == 1 ? ESP_OK : ESP_FAIL;
}
