/* SPDX-License-Identifier: Apache-2.0 */
/* http_link/message.c: what counts as a request, and what an answer looks like. */
#include "expect.h"

#include "http_link/message.h"

static bool reads(const char *text, http_message_request_t *request) {
    return http_message_read_request(text, strlen(text), request);
}

static void requests_are_read(void) {
    static const char *const texts[] = {
        "{\"id\":\"2-13-77\",\"trigger_ms\":1771012549762}",
        " { \"trigger_ms\" : 0 , \"id\" : \"2-13-77\" } \n",
        "{\"note\":\"x\",\"id\":\"2-13-77\",\"more\":-1.5e3,\"trigger_ms\":7,\"last\":null}",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        http_message_request_t request = {0};
        EXPECT(reads(texts[i], &request));
        EXPECT_TEXT(request.id, "2-13-77");
        EXPECT(request.phase == 2 && request.read == 13);
    }
}

static void anything_else_is_none(void) {
    static const char *const texts[] = {
        "",
        "{",
        "{}",
        "[]",
        "null",
        "garbage",
        "{\"id\":\"1-1-1\"}",
        "{\"id\":\"1-1-1\",\"trigger_ms\":\"5\"}",
        "{\"id\":\"1-1-1\",\"trigger_ms\":-5}",
        "{\"id\":\"1-1-1\",\"trigger_ms\":5.5}",
        "{\"id\":\"1-1-1\",\"trigger_ms\":99999999999999999999}",
        "{\"id\":1-1-1,\"trigger_ms\":5}",
        "{\"id\":111,\"trigger_ms\":5}",
        "{\"id\":\"\",\"trigger_ms\":5}",
        "{\"id\":\"1-1\",\"trigger_ms\":5}",
        "{\"id\":\"1-1-1-1\",\"trigger_ms\":5}",
        "{\"id\":\"1--1\",\"trigger_ms\":5}",
        "{\"id\":\"1-1-\",\"trigger_ms\":5}",
        "{\"id\":\"a-1-1\",\"trigger_ms\":5}",
        "{\"id\":\"4294967296-1-1\",\"trigger_ms\":5}",
        "{\"id\":\"1-1-000000000000000000000000001\",\"trigger_ms\":5}",
        "{\"id\":\"1-1-1\\u0041\",\"trigger_ms\":5}",
        "{\"id\":\"1-1-1\",\"trigger_ms\":5",
        "{\"id\":\"1-1-1\",\"trigger_ms\":5}}",
        "{\"id\":\"1-1-1\",\"trigger_ms\":5,}",
        "{\"id\":\"1-1-1\" \"trigger_ms\":5}",
        "{\"id\":\"1-1-1\",\"trigger_ms\":{\"a\":5}}",
        "{\"id\":[\"1-1-1\"],\"trigger_ms\":5}",
        "{\"id\":\"1-1-1\",\"trigger_ms\":5,\"long\":"
        "\"0123456789012345678901234567890123456789012345678901234567890"
        "1234567890123456789012345678901234567890123456789\"}",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        http_message_request_t request;
        if (reads(texts[i], &request)) {
            fprintf(stderr, "read as a request: %s\n", texts[i]);
            exit(EXIT_FAILURE);
        }
    }
}

/* Whatever a sound message is cut to is none, and nothing behind its end is looked at. */
static void no_piece_of_one_is_one(void) {
    static const char text[] = "{\"id\":\"1-2-3\",\"trigger_ms\":5}";
    http_message_request_t request;
    for (size_t length = 0; length < sizeof(text) - 1; length++) {
        char *piece = malloc(length + 1); /* of its own, so that the sanitizer sees one byte too many */
        memcpy(piece, text, length);
        EXPECT(!http_message_read_request(piece, length, &request));
        free(piece);
    }
    EXPECT(http_message_read_request(text, sizeof(text) - 1, &request));
}

static void controls_are_numbers(void) {
    static const char text[] = "{\"phase\":2}";
    uint64_t value = 0;
    EXPECT(http_message_number(text, sizeof(text) - 1, "phase", &value) && value == 2);
    EXPECT(!http_message_number(text, sizeof(text) - 1, "end", &value));
}

static void an_answer_says_all_there_is(void) {
    const http_message_request_t request = {.id = "1-3-3"};
    const http_result_t result = {.outcome = HTTP_OUTCOME_STATUS,
                                  .status = 404,
                                  .body_bytes = 12,
                                  .reused = true,
                                  .dns_us = 1,
                                  .tcp_us = 2,
                                  .tls_us = 3,
                                  .http_us = 4};
    char text[HTTP_MESSAGE_RESPONSE_SIZE];
    size_t length = http_message_write_response(text, &request, &result, 1771012549762, 5);
    EXPECT_TEXT(text, "{\"id\":\"1-3-3\",\"timestamp_ms\":1771012549762,\"status\":404,\"outcome\":6,"
                      "\"body_bytes\":12,\"reused\":1,\"resumed\":0,\"dns_us\":1,\"tcp_us\":2,\"tls_us\":3,"
                      "\"http_us\":4,\"gateway_us\":5}");
    EXPECT(length == strlen(text));
}

static void the_longest_answer_fits(void) {
    http_message_request_t request;
    memset(request.id, '9', sizeof(request.id) - 1);
    request.id[sizeof(request.id) - 1] = '\0';
    const http_result_t result = {.status = UINT16_MAX,
                                  .outcome = HTTP_OUTCOME_MQTT_LOST,
                                  .body_bytes = UINT32_MAX,
                                  .dns_us = UINT32_MAX,
                                  .tcp_us = UINT32_MAX,
                                  .tls_us = UINT32_MAX,
                                  .http_us = UINT32_MAX};
    char text[HTTP_MESSAGE_RESPONSE_SIZE];
    EXPECT(http_message_write_response(text, &request, &result, INT64_MIN, UINT32_MAX) == strlen(text));
}

int main(void) {
    requests_are_read();
    anything_else_is_none();
    no_piece_of_one_is_one();
    controls_are_numbers();
    an_answer_says_all_there_is();
    the_longest_answer_fits();
    return 0;
}
