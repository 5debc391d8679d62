/* SPDX-License-Identifier: Apache-2.0 */
#include "tls_pem.h"

#include <openssl/err.h>
#include <openssl/pem.h>

// Reading past the last certificate is how the end shows; any other error stays in the queue.
static int ends_cleanly(int certificates) {
    unsigned long last = ERR_peek_last_error();
    if (certificates == 0 || ERR_GET_REASON(last) != PEM_R_NO_START_LINE) {
        return -1;
    }
    ERR_clear_error();
    return 0;
}

int tls_pem_add_ca(X509_STORE *store, const char *pem) {
    BIO *bio = BIO_new_mem_buf(pem, -1);
    int added = 0;
    X509 *certificate;
    while ((certificate = PEM_read_bio_X509(bio, NULL, NULL, NULL)) != NULL) {
        added += X509_STORE_add_cert(store, certificate);
        X509_free(certificate);
    }
    BIO_free(bio);
    return ends_cleanly(added);
}

int tls_pem_use_certificate(SSL_CTX *ctx, const char *pem) {
    BIO *bio = BIO_new_mem_buf(pem, -1);
    int used = 0;
    X509 *certificate;
    while ((certificate = PEM_read_bio_X509(bio, NULL, NULL, NULL)) != NULL) {
        used += (int)(used == 0 ? SSL_CTX_use_certificate(ctx, certificate)
                                : SSL_CTX_add1_chain_cert(ctx, certificate));
        X509_free(certificate);
    }
    BIO_free(bio);
    return ends_cleanly(used);
}

int tls_pem_use_key(SSL_CTX *ctx, const char *pem) {
    BIO *bio = BIO_new_mem_buf(pem, -1);
    EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL);
    BIO_free(bio);
    int used = key != NULL && SSL_CTX_use_PrivateKey(ctx, key) == 1;
    EVP_PKEY_free(key);
    return used ? 0 : -1;
}
