/* SPDX-License-Identifier: Apache-2.0 */
/* http_link: whatever a server does, a GET has its outcome, within its time. */
#include <errno.h>

#include "http_rig.h"

/* One GET against one answer. */
static http_result_t outcome_of(const char *answer, then_t then, uint32_t timeout_ms) {
    const step_t steps[] = {{answer, then}};
    rig_t rig;
    BEGIN(&rig, steps);
    int64_t start_us = esp_timer_get_time();
    get(&rig, timeout_ms);
    EXPECT(esp_timer_get_time() - start_us < (int64_t)LONG_MS * 1000);
    end(&rig);
    EXPECT(!rig.result.retried && !rig.result.reused && !rig.result.resumed);
    return rig.result;
}

static void whole_answers_are_ok(void) {
    static const char *const answers[] = {
        OK_ANSWER, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\n" OK_ANSWER,
        "HTTP/1.0 200 OK\r\n\r\nhello", /* until the connection's end */
    };
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        http_result_t result = outcome_of(answers[i], CLOSE, LONG_MS);
        EXPECT(result.outcome == HTTP_OUTCOME_OK);
        EXPECT(result.status == 200 && result.body_bytes == 5);
        EXPECT(result.dns_us + result.tcp_us > 0 && result.http_us > 0 && result.tls_us == 0);
    }
}

static void another_status_is_told(void) {
    http_result_t result = outcome_of("HTTP/1.1 404 Gone\r\nContent-Length: 2\r\n\r\nno", KEEP, LONG_MS);
    EXPECT(result.outcome == HTTP_OUTCOME_STATUS && result.status == 404 && result.body_bytes == 2);
}

static void garbage_is_not_http(void) {
    EXPECT(outcome_of("SSH-2.0-OpenSSH_9\r\n", HANG, LONG_MS).outcome == HTTP_OUTCOME_NOT_HTTP);
    EXPECT(outcome_of("HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n", HANG, LONG_MS).outcome ==
           HTTP_OUTCOME_NOT_HTTP);
}

static void half_an_answer_is_truncated(void) {
    EXPECT(outcome_of("HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello", CLOSE, LONG_MS).outcome ==
           HTTP_OUTCOME_TRUNCATED);
    EXPECT(outcome_of("HTTP/1.1 200 OK\r\nConte", CLOSE, LONG_MS).outcome == HTTP_OUTCOME_TRUNCATED);
    EXPECT(outcome_of("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n", CLOSE, LONG_MS)
               .outcome == HTTP_OUTCOME_TRUNCATED);
    EXPECT(outcome_of("", CLOSE, LONG_MS).outcome == HTTP_OUTCOME_TRUNCATED);
}

static void silence_is_a_timeout(void) {
    EXPECT(outcome_of("", HANG, SOON_MS).outcome == HTTP_OUTCOME_TIMEOUT);
}

static void an_answer_that_does_not_end_is_cut(void) {
    EXPECT(outcome_of("HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello", HANG, SOON_MS).outcome ==
           HTTP_OUTCOME_ENDLESS);
    EXPECT(outcome_of("HTTP/1.1 200 OK\r\n\r\nx", DRIP, SOON_MS).outcome == HTTP_OUTCOME_ENDLESS);
    EXPECT(outcome_of("HTTP/1.1 200 OK\r\n\r\nbody without an end ", FLOOD, LONG_MS).outcome ==
           HTTP_OUTCOME_ENDLESS);
    EXPECT(outcome_of("HTTP/1.1 100 Continue\r\n\r\n", FLOOD, SOON_MS).outcome == HTTP_OUTCOME_ENDLESS);
}

static void a_closed_port_is_unreachable(void) {
    server_t closed = {0};
    open_listener(&closed); /* bound, so that nobody else has the port, and not listening */
    const http_link_config_t config = config_of(closed.port, 0);
    rig_t rig;
    EXPECT(http_link_create(&rig.link, &config) == ESP_OK);
    EXPECT(get(&rig, LONG_MS) == HTTP_OUTCOME_UNREACHABLE);
    EXPECT(rig.result.error == ECONNREFUSED);
    char why[64];
    http_link_explain(&rig.result, why, sizeof(why));
    EXPECT(strstr(why, "refused") != NULL);
    http_link_delete(&rig.link);
    close(closed.listener);
}

static void a_request_that_does_not_fit_is_not_sent(void) {
    char path[400] = "/";
    memset(path + 1, 'x', sizeof(path) - 2);
    rig_t rig = {0};
    const http_link_config_t config = config_of(1, 0);
    EXPECT(http_link_create(&rig.link, &config) == ESP_OK);
    http_link_get(&rig.link, path, NULL, LONG_MS, &rig.result);
    EXPECT(rig.result.outcome == HTTP_OUTCOME_UNREACHABLE && rig.result.error == EMSGSIZE);
    http_link_delete(&rig.link);
}

static void a_lack_of_memory_is_told_apart(void) {
    const http_result_t short_of_it[] = {
        {.outcome = HTTP_OUTCOME_TLS_FAILED, .tls_error = ESP_ERR_NO_MEM},
        {.outcome = HTTP_OUTCOME_TLS_FAILED, .tls_stack_error = 0x7F00}, /* MBEDTLS_ERR_SSL_ALLOC_FAILED */
        {.outcome = HTTP_OUTCOME_UNREACHABLE, .error = ENOMEM},
    };
    const http_result_t other[] = {
        {.outcome = HTTP_OUTCOME_TLS_FAILED, .tls_stack_error = 0x2700}, /* the certificate */
        {.outcome = HTTP_OUTCOME_UNREACHABLE, .error = ECONNREFUSED},
        {.outcome = HTTP_OUTCOME_OK},
    };
    for (size_t i = 0; i < 3; i++) {
        EXPECT(http_link_lacked_memory(&short_of_it[i]));
        EXPECT(!http_link_lacked_memory(&other[i]));
    }
}

void app_main(void) {
    whole_answers_are_ok();
    another_status_is_told();
    garbage_is_not_http();
    half_an_answer_is_truncated();
    silence_is_a_timeout();
    an_answer_that_does_not_end_is_cut();
    a_closed_port_is_unreachable();
    a_request_that_does_not_fit_is_not_sent();
    a_lack_of_memory_is_told_apart();
    exit(EXIT_SUCCESS);
}
