/* SPDX-License-Identifier: Apache-2.0 */
// PEM in memory into an OpenSSL context. 0 when done, -1 with OpenSSL's error queue filled.
#pragma once

#include <openssl/ssl.h>

int tls_pem_add_ca(X509_STORE *store, const char *pem);
int tls_pem_use_certificate(SSL_CTX *ctx, const char *pem); // leaf first, then its chain
int tls_pem_use_key(SSL_CTX *ctx, const char *pem);
