/* SPDX-License-Identifier: Apache-2.0 */
/* An answer as http_parser sees it, bounded. */
#include "private.h"

enum { INFORMATIONAL = 1, SWITCHING_PROTOCOLS = 101 };

static int on_body(http_parser *parser, const char *data, size_t length) {
    http_response_t *response = parser->data;
    (void)data;
    response->too_long = length > HTTP_LINK_MAX_BODY_BYTES - response->body_bytes;
    if (response->too_long) {
        return 1; /* stops the parser */
    }
    response->body_bytes += (uint32_t)length;
    return 0;
}

static int on_message_complete(http_parser *parser) {
    http_response_t *response = parser->data;
    bool interim = parser->status_code / 100 == INFORMATIONAL && parser->status_code != SWITCHING_PROTOCOLS;
    if (!interim) {
        response->complete = true;
        response->keep_alive = http_should_keep_alive(parser) != 0;
        http_parser_pause(parser, 1); /* what follows is not this answer's */
    }
    return 0;
}

static const http_parser_settings SETTINGS = {
    .on_body = on_body,
    .on_message_complete = on_message_complete,
};

void http_response_begin(http_response_t *response) {
    *response = (http_response_t){0};
    http_parser_init(&response->parser, HTTP_RESPONSE);
    response->parser.data = response;
}

static http_outcome_t judge(const http_response_t *response) {
    enum http_errno error = HTTP_PARSER_ERRNO(&response->parser);
    if (response->complete) {
        return HTTP_OUTCOME_OK;
    }
    if (response->too_long || error == HPE_HEADER_OVERFLOW) {
        return HTTP_OUTCOME_ENDLESS;
    }
    return error == HPE_OK ? HTTP_OUTCOME_OK : HTTP_OUTCOME_NOT_HTTP;
}

http_outcome_t http_response_feed(http_response_t *response, const char *data, size_t length) {
    response->bytes += length;
    size_t parsed = http_parser_execute(&response->parser, &SETTINGS, data, length);
    if (response->complete && parsed < length) {
        response->keep_alive = false; /* it says more than it was asked */
    }
    return judge(response);
}

http_outcome_t http_response_end(http_response_t *response) {
    http_parser_execute(&response->parser, &SETTINGS, NULL, 0);
    return response->complete ? HTTP_OUTCOME_OK : HTTP_OUTCOME_TRUNCATED;
}
