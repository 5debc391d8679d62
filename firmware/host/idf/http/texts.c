/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "http_client_priv.h"

bool http_text_set(char **text, const char *value, int length) {
    char *copy = length < 0 ? strdup(value) : strndup(value, (size_t)length);
    if (copy == NULL) {
        return false;
    }
    free(*text);
    *text = copy;
    return true;
}

bool http_text_append(char **text, const char *value, size_t length) {
    size_t before = *text == NULL ? 0 : strlen(*text);
    char *grown = realloc(*text, before + length + 1);
    if (grown == NULL) {
        return false;
    }
    memcpy(grown + before, value, length);
    grown[before + length] = '\0';
    *text = grown;
    return true;
}

void http_text_trim(char *text) {
    const char *start = text;
    while (isspace((unsigned char)*start)) {
        start++;
    }
    size_t length = strlen(start);
    while (length > 0 && isspace((unsigned char)start[length - 1])) {
        length--;
    }
    memmove(text, start, length);
    text[length] = '\0';
}

char *http_text_between(const char *text, const char *begin, const char *end) {
    const char *start = strcasestr(text, begin);
    if (start == NULL) {
        return NULL;
    }
    start += strlen(begin);
    const char *stop = *end == '\0' ? start + strlen(start) : strcasestr(start, end);
    return stop == NULL ? NULL : strndup(start, (size_t)(stop - start));
}
