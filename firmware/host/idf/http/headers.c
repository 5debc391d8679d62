/* SPDX-License-Identifier: Apache-2.0 */
#include "http_headers.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "esp_log.h"
#include "http_client_priv.h"

static const char *TAG = "HTTP_HEADER";

// The link that leads to the header, or to the end.
static http_header_t **find(http_headers_t *headers, const char *key) {
    http_header_t **link = &headers->first;
    while (*link != NULL && strcasecmp((*link)->key, key) != 0) {
        link = &(*link)->next;
    }
    return link;
}

char *http_headers_get(const http_headers_t *headers, const char *key) {
    const http_header_t *header = *find((http_headers_t *)headers, key);
    return header == NULL ? NULL : header->value;
}

static void header_free(http_header_t *header) {
    if (header != NULL) {
        free(header->key);
        free(header->value);
        free(header);
    }
}

static http_header_t *create(const char *key, const char *value) {
    http_header_t *header = calloc(1, sizeof(*header));
    if (header == NULL || (header->key = strdup(key)) == NULL || (header->value = strdup(value)) == NULL) {
        header_free(header);
        return NULL;
    }
    http_text_trim(header->key);
    http_text_trim(header->value);
    return header;
}

esp_err_t http_headers_set(http_headers_t *headers, const char *key, const char *value) {
    if (value == NULL) {
        return http_headers_delete(headers, key);
    }
    http_header_t **link = find(headers, key);
    if (*link == NULL) {
        *link = create(key, value);
        return *link == NULL ? ESP_ERR_NO_MEM : ESP_OK;
    }
    char *copy = strdup(value); // before the old one goes: the value may be the header's own
    if (copy == NULL) {
        return ESP_ERR_NO_MEM;
    }
    free((*link)->value);
    (*link)->value = copy;
    http_text_trim(copy);
    return ESP_OK;
}

esp_err_t http_headers_delete(http_headers_t *headers, const char *key) {
    http_header_t **link = find(headers, key);
    http_header_t *found = *link;
    if (found == NULL) {
        return ESP_ERR_NOT_FOUND;
    }
    *link = found->next;
    header_free(found);
    return ESP_OK;
}

void http_headers_clear(http_headers_t *headers) {
    while (headers->first != NULL) {
        http_header_t *first = headers->first;
        headers->first = first->next;
        header_free(first);
    }
}

static int line_bytes(const http_header_t *header) {
    return (int)(strlen(header->key) + strlen(header->value)) + 4;
}

int http_headers_write(const http_headers_t *headers, int index, char *buffer, int *bytes) {
    const http_header_t *header = headers->first;
    int at = 0, written = 0;
    for (; header != NULL && at < index; header = header->next) {
        at++;
    }
    if (header == NULL) {
        return 0;
    }
    for (; header != NULL; header = header->next) {
        if (written + line_bytes(header) + 1 > *bytes - 2) { // with the blank line and its NUL
            ESP_LOGE(TAG, "Buffer length is small to fit all the headers");
            break;
        }
        written += sprintf(buffer + written, "%s: %s\r\n", header->key, header->value);
        at++;
    }
    if (header == NULL) {
        written += sprintf(buffer + written, "\r\n");
    }
    *bytes = written;
    return at;
}
