/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "http_link/link.h"
#include "mqtt_link/tls_fault.h"

static const char *plain_words(const http_result_t *result) {
    static const char *const words[] = {
        [HTTP_OUTCOME_OK] = "answered",
        [HTTP_OUTCOME_TIMEOUT] = "no answer in time",
        [HTTP_OUTCOME_UNREACHABLE] = "no address for the name",
        [HTTP_OUTCOME_NOT_HTTP] = "what came back is not HTTP",
        [HTTP_OUTCOME_TRUNCATED] = "the connection was closed before the answer was whole",
        [HTTP_OUTCOME_ENDLESS] = "the answer did not end",
        [HTTP_OUTCOME_MQTT_LOST] = "the answer could not be published",
    };
    return words[result->outcome];
}

void http_link_explain(const http_result_t *result, char *text, size_t size) {
    if (result->outcome == HTTP_OUTCOME_STATUS) {
        snprintf(text, size, "answered with HTTP status %u", (unsigned)result->status);
    } else if (result->outcome == HTTP_OUTCOME_UNREACHABLE && result->error != 0) {
        snprintf(text, size, "%s (errno %d)", strerror(result->error), result->error);
    } else if (result->outcome == HTTP_OUTCOME_TLS_FAILED) {
        snprintf(text, size, "TLS failed: mbedtls -0x%04x, certificate flags 0x%x%s",
                 (unsigned)result->tls_stack_error, (unsigned)result->certificate_flags,
                 tls_fault_certificate(result->tls_stack_error, result->certificate_flags));
    } else {
        snprintf(text, size, "%s", plain_words(result));
    }
}

bool http_link_lacked_memory(const http_result_t *result) {
    bool in_tls = result->outcome == HTTP_OUTCOME_TLS_FAILED &&
                  tls_fault_owner(result->tls_error, result->tls_stack_error) == BENCH_OWNER_FIRMWARE;
    return in_tls || (result->outcome == HTTP_OUTCOME_UNREACHABLE && result->error == ENOMEM);
}
