/* SPDX-License-Identifier: Apache-2.0 */
// What carries a TLS session's bytes, as mbedtls_ssl_set_bio() takes it, and an OpenSSL BIO over it.
#pragma once

#include <openssl/bio.h>
#include <stddef.h>
#include <sys/types.h>

// As send() and recv(): -1 with errno.
typedef struct {
    ssize_t (*send)(void *context, const void *data, size_t len);
    ssize_t (*receive)(void *context, void *buffer, size_t len);
    void *context;
} tls_io_t;

// `io` must outlive the BIO. NULL when there is no memory.
BIO *tls_bio_new(const tls_io_t *io);
