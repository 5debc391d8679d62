/* SPDX-License-Identifier: Apache-2.0 */
// esp_tls_cfg_t into OpenSSL, as set_client_config() of ESP-IDF's esp_tls_mbedtls.c puts it into Mbed TLS.
#pragma once

#include <openssl/ssl.h>

#include "esp_tls.h"

#ifndef CONFIG_MBEDTLS_SSL_OUT_CONTENT_LEN
#define CONFIG_MBEDTLS_SSL_OUT_CONTENT_LEN 4096
#endif
#define TLS_RECORD_BYTES CONFIG_MBEDTLS_SSL_OUT_CONTENT_LEN

// Ready for its BIO. NULL where it cannot be set up: *err says why, the TLS library's code goes to `error`.
SSL *tls_setup(const char *host, size_t host_length, const esp_tls_cfg_t *cfg, esp_tls_error_handle_t error,
               esp_err_t *err);
