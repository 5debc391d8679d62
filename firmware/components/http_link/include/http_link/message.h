/* SPDX-License-Identifier: Apache-2.0 */
/* The gateway's messages: JSON in, from whom it may be anything, and JSON out. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "http_link/link.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    HTTP_MESSAGE_ID_SIZE = 32,
    HTTP_MESSAGE_MAX_BYTES = 128, /* of what is read */
    HTTP_MESSAGE_RESPONSE_SIZE = 320,
};

typedef struct {
    char id[HTTP_MESSAGE_ID_SIZE]; /* <phase>-<read>-<n> */
    uint32_t phase, read;
} http_message_request_t;

/* A whole number without sign, of a flat JSON object. False where there is no such key, or it is not that, or
 * the text is not such an object, or it is too long. */
bool http_message_number(const char *text, size_t length, const char *key, uint64_t *value);

/* {"id":"1-3-3","trigger_ms":1771012549762}. False for anything else; other keys are skipped. */
bool http_message_read_request(const char *text, size_t length, http_message_request_t *request);

/* Returns the length. */
size_t http_message_write_response(char text[HTTP_MESSAGE_RESPONSE_SIZE],
                                   const http_message_request_t *request, const http_result_t *result,
                                   int64_t timestamp_ms, uint32_t gateway_us);

#ifdef __cplusplus
}
#endif
