/* SPDX-License-Identifier: Apache-2.0 */
// The lines of a request: names are looked up whatever their case, and are sent in the order of being set.
#pragma once

#include "esp_err.h"

typedef struct http_header {
    char *key;
    char *value;
    struct http_header *next;
} http_header_t;

typedef struct {
    http_header_t *first;
} http_headers_t;

// NULL where there is none.
char *http_headers_get(const http_headers_t *headers, const char *key);
// A value of NULL deletes.
esp_err_t http_headers_set(http_headers_t *headers, const char *key, const char *value);
esp_err_t http_headers_delete(http_headers_t *headers, const char *key); // ESP_ERR_NOT_FOUND
void http_headers_clear(http_headers_t *headers);
// Writes lines from header `index` on, as many as fit into *bytes, and the blank line after the last. Returns
// the index to go on with, 0 when nothing is left; *bytes is what was written.
int http_headers_write(const http_headers_t *headers, int index, char *buffer, int *bytes);
