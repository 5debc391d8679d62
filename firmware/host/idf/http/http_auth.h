/* SPDX-License-Identifier: Apache-2.0 */
// The value of the header Authorization.
#pragma once

#include <stdint.h>

// What a server's WWW-Authenticate asks for.
typedef struct {
    char *method;
    char *algorithm;
    char *realm;
    char *nonce;
    char *qop;
    char *opaque;
    int nonce_count;
} http_auth_t;

void http_auth_clear(http_auth_t *auth);
// To be freed; NULL without memory.
char *http_auth_basic(const char *username, const char *password);
// To be freed; NULL without credentials, realm or nonce, too.
char *http_auth_digest(const char *username, const char *password, const char *uri, uint64_t cnonce,
                       http_auth_t *auth);
