/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "http_auth.h"

#include <inttypes.h>
#include <openssl/evp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "esp_log.h"

#define HEX_BYTES (2 * EVP_MAX_MD_SIZE + 1)

static const char *TAG = "HTTP_AUTH";

void http_auth_clear(http_auth_t *auth) {
    free(auth->method);
    free(auth->algorithm);
    free(auth->realm);
    free(auth->nonce);
    free(auth->qop);
    free(auth->opaque);
    memset(auth, 0, sizeof(*auth));
}

char *http_auth_basic(const char *username, const char *password) {
    char *plain = NULL;
    int length = asprintf(&plain, "%s:%s", username, password == NULL ? "(null)" : password);
    char *value = length < 0 ? NULL : malloc(sizeof("Basic ") + 4 * ((size_t)length / 3 + 1));
    if (value != NULL) {
        strcpy(value, "Basic ");
        EVP_EncodeBlock((unsigned char *)value + strlen(value), (const unsigned char *)plain, length);
    }
    if (length >= 0) {
        free(plain);
    }
    return value;
}

// The digest, in hexadecimal, of a text made as printf() makes it.
static bool digest(const EVP_MD *type, char hex[HEX_BYTES], const char *format, ...) {
    unsigned char bytes[EVP_MAX_MD_SIZE];
    unsigned int size = 0;
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (length < 0) {
        return false;
    }
    bool done = EVP_Digest(text, (size_t)length, bytes, &size, type, NULL) == 1;
    free(text);
    for (unsigned int i = 0; done && i < size; i++) {
        sprintf(hex + 2 * i, "%02x", bytes[i]);
    }
    return done;
}

static bool is_any(const char *text, const char *one, const char *other) {
    return strcasecmp(text, one) == 0 || strcasecmp(text, other) == 0;
}

// RFC 7616's A1 and A2. Without a body's digest "auth-int" hashes the word entity, as ESP-IDF does.
static bool hash_parts(const EVP_MD *type, const char *username, const char *password, const char *uri,
                       uint64_t cnonce, const http_auth_t *auth, char a1[HEX_BYTES], char a2[HEX_BYTES]) {
    bool done = digest(type, a1, "%s:%s:%s", username, auth->realm, password);
    if (is_any(auth->algorithm, "md5-sess", "SHA-256-sess")) {
        done = done && digest(type, a1, "%s:%s:%016" PRIx64, a1, auth->nonce, cnonce);
    }
    done = done && digest(type, a2, "%s:%s", auth->method, uri);
    if (auth->qop != NULL && strcasecmp(auth->qop, "auth-int") == 0) {
        done = done && digest(type, a2, "%s:entity", a2);
    }
    return done;
}

static bool respond(const EVP_MD *type, const http_auth_t *auth, uint64_t cnonce, const char *a1,
                    const char *a2, char response[HEX_BYTES]) {
    if (auth->qop != NULL) {
        return digest(type, response, "%s:%s:%08x:%016" PRIx64 ":%s:%s", a1, auth->nonce, auth->nonce_count,
                      cnonce, auth->qop, a2);
    }
    ESP_LOGW(TAG, "\"qop\" directive not found. This may lead to attacks like chosen-plaintext attack");
    return digest(type, response, "%s:%s:%s", a1, auth->nonce, a2);
}

char *http_auth_digest(const char *username, const char *password, const char *uri, uint64_t cnonce,
                       http_auth_t *auth) {
    if (username == NULL || password == NULL || auth->nonce == NULL || auth->realm == NULL ||
        auth->algorithm == NULL) {
        return NULL;
    }
    char a1[HEX_BYTES], a2[HEX_BYTES], response[HEX_BYTES];
    const EVP_MD *type = is_any(auth->algorithm, "SHA256", "SHA-256") ? EVP_sha256() : EVP_md5();
    if (!hash_parts(type, username, password, uri, cnonce, auth, a1, a2) ||
        !respond(type, auth, cnonce, a1, a2, response)) {
        return NULL;
    }
    char quality[128] = "";
    if (auth->qop != NULL) {
        snprintf(quality, sizeof(quality), ", qop=%s, nc=%08x, cnonce=\"%016" PRIx64 "\"", auth->qop,
                 auth->nonce_count++, cnonce);
    }
    char *value = NULL;
    int length = asprintf(&value,
                          "Digest username=\"%s\", realm=\"%s\", nonce=\"%s\", uri=\"%s\", algorithm=%s, "
                          "response=\"%s\"%s%s%s%s",
                          username, auth->realm, auth->nonce, uri, auth->algorithm, response, quality,
                          auth->opaque == NULL ? "" : ", opaque=\"", auth->opaque == NULL ? "" : auth->opaque,
                          auth->opaque == NULL ? "" : "\"");
    return length < 0 ? NULL : value;
}
