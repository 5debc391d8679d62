/* SPDX-License-Identifier: Apache-2.0 */
// The authorities that all connections share, of esp_tls_set_global_ca_store().
#pragma once

#include <openssl/ssl.h>

#include "esp_err.h"

// ESP_ERR_INVALID_STATE where there are none.
esp_err_t tls_ca_store_use(SSL_CTX *ctx);
