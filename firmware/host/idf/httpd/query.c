/* SPDX-License-Identifier: Apache-2.0 */
// What a handler asks of the request's URI and headers.
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "httpd_priv.h"

// Copies a text that does not end in a NUL, unless that is too long.
static esp_err_t copy(const char *text, size_t length, char *val, size_t val_size) {
    if (length > val_size - 1) {
        return ESP_ERR_HTTPD_RESULT_TRUNC;
    }
    memcpy(val, text, length);
    val[length] = '\0';
    return ESP_OK;
}

// The value after "key=", in a list; keys follow each other after `next`, values end at `end`.
static const char *find_value(const char *list, const char *key, char next, char end, size_t *length) {
    const size_t key_length = strlen(key);
    while (list != NULL && *list != '\0') {
        const char *value = strchr(list, '=');
        if (value == NULL) {
            return NULL;
        }
        if ((size_t)(value - list) == key_length && strncasecmp(list, key, key_length) == 0) {
            value++;
            const char *stop = strchr(value, end);
            *length = stop == NULL ? strlen(value) : (size_t)(stop - value);
            return value;
        }
        list = strchr(value, next);
        list = list == NULL ? NULL : list + 1;
    }
    return NULL;
}

esp_err_t httpd_query_key_value(const char *qry, const char *key, char *val, size_t val_size) {
    if (qry == NULL || key == NULL || val == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    size_t length = 0;
    const char *value = find_value(qry, key, '&', '&', &length);
    return value == NULL ? ESP_ERR_NOT_FOUND : copy(value, length, val, val_size);
}

static const char *query_of(const httpd_req_t *request, size_t *length) {
    const struct http_parser_url *url = &((httpd_aux_t *)request->aux)->url;
    if (request->uri[0] == '\0' || !(url->field_set & (1U << UF_QUERY))) {
        return NULL;
    }
    *length = url->field_data[UF_QUERY].len;
    return request->uri + url->field_data[UF_QUERY].off;
}

size_t httpd_req_get_url_query_len(httpd_req_t *r) {
    size_t length = 0;
    return r == NULL || query_of(r, &length) == NULL ? 0 : length;
}

esp_err_t httpd_req_get_url_query_str(httpd_req_t *r, char *buf, size_t buf_len) {
    if (r == NULL || buf == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    size_t length = 0;
    const char *query = query_of(r, &length);
    return query == NULL ? ESP_ERR_NOT_FOUND : copy(query, length, buf, buf_len);
}

static const char *header_of(const httpd_req_t *request, const char *field) {
    const httpd_aux_t *aux = request->aux;
    const char *at = aux->headers, *end = aux->headers + aux->headers_bytes;
    while (aux->headers_bytes > 0 && at < end) {
        const char *value = at + strlen(at) + 1;
        if (strcasecmp(at, field) == 0) {
            return value;
        }
        at = value + strlen(value) + 1;
    }
    return NULL;
}

size_t httpd_req_get_hdr_value_len(httpd_req_t *r, const char *field) {
    const char *value = r == NULL || field == NULL ? NULL : header_of(r, field);
    return value == NULL ? 0 : strlen(value);
}

// As ESP-IDF, a buffer that lacks room for the NUL alone gets all but the last character, and ESP_OK.
esp_err_t httpd_req_get_hdr_value_str(httpd_req_t *r, const char *field, char *val, size_t val_size) {
    if (r == NULL || field == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    const char *value = header_of(r, field);
    if (value == NULL) {
        return ESP_ERR_NOT_FOUND;
    }
    const size_t length = strlen(value);
    if (val_size > 0) {
        snprintf(val, val_size, "%s", value);
    }
    return val_size < length ? ESP_ERR_HTTPD_RESULT_TRUNC : ESP_OK;
}

esp_err_t httpd_req_get_cookie_val(httpd_req_t *req, const char *cookie_name, char *val, size_t *val_size) {
    const char *cookies = req == NULL ? NULL : header_of(req, "Cookie");
    if (cookies == NULL || *cookies == '\0') {
        return ESP_ERR_NOT_FOUND;
    }
    if (cookie_name == NULL || val == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    size_t length = 0;
    const char *value = find_value(cookies, cookie_name, ' ', ';', &length);
    if (value == NULL) {
        return ESP_ERR_NOT_FOUND;
    }
    const size_t room = *val_size;
    *val_size = length + 1; // what it takes, with its NUL
    return copy(value, length, val, room);
}
