/* SPDX-License-Identifier: Apache-2.0 */
#include "http_link/message.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { KEY_DIGITS_MAX = 19 }; /* of a number; fits 64 bits */

/* What is left of a text, and the last token of it. */
typedef struct {
    const char *at, *end;
    const char *token;
    size_t token_length;
    bool is_string;
} scan_t;

static void skip_blanks(scan_t *scan) {
    while (scan->at < scan->end && strchr(" \t\r\n", *scan->at) != NULL && *scan->at != '\0') {
        scan->at++;
    }
}

static bool take_mark(scan_t *scan, char mark) {
    skip_blanks(scan);
    if (scan->at == scan->end || *scan->at != mark) {
        return false;
    }
    scan->at++;
    return true;
}

/* No string of ours has an escape in it, so one with an escape is none of ours. */
static bool take_string(scan_t *scan) {
    if (!take_mark(scan, '"')) {
        return false;
    }
    scan->token = scan->at;
    while (scan->at < scan->end && *scan->at != '"' && *scan->at != '\\' && (unsigned char)*scan->at >= ' ') {
        scan->at++;
    }
    scan->token_length = (size_t)(scan->at - scan->token);
    scan->is_string = true;
    return scan->at < scan->end && *scan->at++ == '"';
}

/* A string, a number, true, false, null: nothing nested. */
static bool take_scalar(scan_t *scan) {
    skip_blanks(scan);
    if (scan->at < scan->end && *scan->at == '"') {
        return take_string(scan);
    }
    scan->token = scan->at;
    while (scan->at < scan->end && (isalnum((unsigned char)*scan->at) || strchr("+-.", *scan->at) != NULL) &&
           *scan->at != '\0') {
        scan->at++;
    }
    scan->token_length = (size_t)(scan->at - scan->token);
    scan->is_string = false;
    return scan->token_length > 0;
}

static bool token_is(const scan_t *scan, const char *text) {
    return scan->token_length == strlen(text) && memcmp(scan->token, text, scan->token_length) == 0;
}

/* Walks the whole object, so that half of one is none. `found` is the key's value, the first one. */
static bool find(const char *text, size_t length, const char *key, scan_t *found) {
    scan_t scan = {.at = text, .end = text + length};
    bool seen = false, more = length <= HTTP_MESSAGE_MAX_BYTES && take_mark(&scan, '{');
    bool sound = more;
    while (more) {
        bool wanted = take_string(&scan) && !seen && token_is(&scan, key);
        sound = scan.is_string && take_mark(&scan, ':') && take_scalar(&scan);
        if (sound && wanted) {
            *found = scan;
            seen = true;
        }
        more = sound && take_mark(&scan, ',');
        scan.is_string = false;
    }
    sound = sound && take_mark(&scan, '}');
    skip_blanks(&scan);
    return sound && scan.at == scan.end && seen;
}

/* Digits only; moves `at` behind them. */
static bool take_digits(const char **at, const char *end, uint64_t *value) {
    const char *start = *at;
    *value = 0;
    while (*at < end && isdigit((unsigned char)**at) && *at - start <= KEY_DIGITS_MAX) {
        *value = *value * 10 + (uint64_t)(*(*at)++ - '0');
    }
    return *at > start && *at - start <= KEY_DIGITS_MAX;
}

bool http_message_number(const char *text, size_t length, const char *key, uint64_t *value) {
    scan_t found = {0};
    if (!find(text, length, key, &found) || found.is_string) {
        return false;
    }
    const char *at = found.token, *end = found.token + found.token_length;
    return take_digits(&at, end, value) && at == end;
}

/* <phase>-<read>-<n> */
static bool split_id(const char *id, size_t length, http_message_request_t *request) {
    const char *at = id, *end = id + length;
    uint64_t numbers[3] = {0};
    for (size_t i = 0; i < 3; i++) {
        bool parted = i == 0 || (at < end && *at++ == '-');
        if (!parted || !take_digits(&at, end, &numbers[i]) || numbers[i] > UINT32_MAX) {
            return false;
        }
    }
    request->phase = (uint32_t)numbers[0];
    request->read = (uint32_t)numbers[1];
    return at == end;
}

bool http_message_read_request(const char *text, size_t length, http_message_request_t *request) {
    scan_t id = {0};
    uint64_t trigger_ms = 0;
    bool sound = find(text, length, "id", &id) && id.is_string && id.token_length < HTTP_MESSAGE_ID_SIZE &&
                 http_message_number(text, length, "trigger_ms", &trigger_ms);
    if (!sound || !split_id(id.token, id.token_length, request)) {
        return false;
    }
    memcpy(request->id, id.token, id.token_length);
    request->id[id.token_length] = '\0';
    return true;
}

size_t http_message_write_response(char text[HTTP_MESSAGE_RESPONSE_SIZE],
                                   const http_message_request_t *request, const http_result_t *result,
                                   int64_t timestamp_ms, uint32_t gateway_us) {
    int length = snprintf(text, HTTP_MESSAGE_RESPONSE_SIZE,
                          "{\"id\":\"%s\",\"timestamp_ms\":%" PRId64 ",\"status\":%u,\"outcome\":%d,"
                          "\"body_bytes\":%" PRIu32 ",\"reused\":%d,\"resumed\":%d,\"dns_us\":%" PRIu32
                          ",\"tcp_us\":%" PRIu32 ",\"tls_us\":%" PRIu32 ",\"http_us\":%" PRIu32
                          ",\"gateway_us\":%" PRIu32 "}",
                          request->id, timestamp_ms, (unsigned)result->status, (int)result->outcome,
                          result->body_bytes, result->reused, result->resumed, result->dns_us, result->tcp_us,
                          result->tls_us, result->http_us, gateway_us);
    return length > 0 && length < HTTP_MESSAGE_RESPONSE_SIZE ? (size_t)length : 0;
}
