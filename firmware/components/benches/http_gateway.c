/* SPDX-License-Identifier: Apache-2.0 */
/* http_gateway: the board between MQTT and HTTP. It takes a request from a topic, fetches it from a server on
 * the rack's host, and publishes the answer; the host's requester keeps the time of the whole way, the board
 * that of the parts on it. docs/reference/http-gateway.md has topics and messages.
 *
 *   phase, read, profile          of the request; phase 0: a row left over, its request never came
 *   received_us, published_us     since t0: MQTT's event; right before the answer is published
 *   dns_us, tcp_us, tls_us        until there was a connection, 0 where there was one
 *   http_us                       from writing the request until its answer was whole
 *   outcome                       http_link/link.h
 *   reused, resumed               an old connection; an abbreviated TLS handshake
 */
#include <stdlib.h>

#include "agent/bench.h"
#include "esp_timer.h"
#include "http_link/gateway.h"
#include "http_link/server.h"
#include "http_link/session.h"

typedef struct {
    const bench_run_t *run;
    bench_samples_t *samples;
    http_gateway_t gateway;
    http_session_t session;
} bench_gateway_t;

static esp_err_t count_rows(bench_gateway_t *b) {
    int64_t reads = bench_param_int(b->run, "reads") + bench_param_int(b->run, "reads_after_reconnect");
    size_t rows = (size_t)reads * http_server_profile_count(b->run);
    size_t capacity = bench_samples_capacity(b->samples);
    if (rows > capacity) {
        return bench_fail(b->samples, BENCH_OWNER_CONFIGURATION, ESP_ERR_INVALID_SIZE,
                          "%u requests are more than the %u that the sample buffer takes", (unsigned)rows,
                          (unsigned)capacity);
    }
    b->gateway.row_count = rows;
    return ESP_OK;
}

/* Before anything of the gateway's has touched the server, so that its first request is the cold one. */
static esp_err_t check_server(const bench_gateway_t *b, http_link_config_t *server) {
    esp_err_t err = http_server_read(b->run, b->samples, server);
    return err == ESP_OK ? http_server_check(b->run, b->samples, server) : err;
}

static esp_err_t create(bench_gateway_t *b, const http_link_config_t *server) {
    b->session = (http_session_t){.run = b->run, .samples = b->samples, .gateway = &b->gateway};
    b->gateway.run = b->run;
    b->gateway.samples = b->samples;
    b->gateway.mqtt = &b->session.link;
    b->gateway.qos = (int)bench_param_int(b->run, "qos");
    b->gateway.timeout_ms = (uint32_t)bench_param_int(b->run, "timeout_ms");
    b->gateway.t0_us = esp_timer_get_time();
    esp_err_t err = http_session_create(&b->session);
    err = err == ESP_OK ? http_gateway_create(&b->gateway) : err;
    return err == ESP_OK ? http_server_add_profiles(b->run, &b->gateway, server) : err;
}

static esp_err_t report(const bench_gateway_t *b) {
    if (esp_timer_get_time() - b->gateway.t0_us > UINT32_MAX) {
        return bench_fail(b->samples, BENCH_OWNER_CONFIGURATION, ESP_ERR_INVALID_SIZE,
                          "the run took longer than 32-bit microseconds hold; give it fewer reads or pauses");
    }
    bench_environment_int(b->samples, "t0_us", b->gateway.t0_us);
    bench_environment_int(b->samples, "sockets", b->gateway.channels[0].link.config.sockets_max);
    http_session_environment(&b->session);
    http_gateway_environment(&b->gateway);
    return ESP_OK;
}

static esp_err_t run_case(bench_gateway_t *b) {
    http_link_config_t server;
    esp_err_t err = count_rows(b);
    err = err == ESP_OK ? check_server(b, &server) : err;
    err = err == ESP_OK ? create(b, &server) : err;
    err = err == ESP_OK ? bench_samples_begin(b->samples, b->gateway.row_count, 0) : err;
    err = err == ESP_OK ? http_session_run(&b->session) : err;
    http_gateway_stop(&b->gateway);
    return err == ESP_OK ? report(b) : err;
}

static esp_err_t run(const bench_run_t *bench_run, bench_samples_t *samples) {
    bench_gateway_t *b = calloc(1, sizeof(*b));
    if (b == NULL) {
        return ESP_ERR_NO_MEM;
    }
    b->run = bench_run;
    b->samples = samples;
    esp_err_t err = run_case(b);
    http_session_delete(&b->session);
    http_gateway_delete(&b->gateway);
    free(b);
    return err;
}

static const bench_parameter_t PARAMETERS[] = {
    {.key = "transport", .type = BENCH_CHOICE, .choices = mqtt_link_transports},
    {.key = "http", .type = BENCH_CHOICE, .def = 1, .choices = http_server_schemes},
    {.key = "profile", .type = BENCH_CHOICE, .choices = http_gateway_profiles},
    {.key = "order", .type = BENCH_CHOICE, .choices = http_session_orders},
    {.key = "keep_alive", .type = BENCH_CHOICE, .choices = http_server_keep_alives},
    {.key = "sockets_max", .type = BENCH_INT, .def = -1, .min = -1, .max = HTTP_LINK_MAX_SOCKETS},
    {.key = "probe_interval_ms", .type = BENCH_INT, .def = -1, .min = -1, .max = 60000},
    {.key = "reads", .type = BENCH_INT, .def = 5, .min = 1, .max = 1000},
    {.key = "reads_after_reconnect", .type = BENCH_INT, .def = 5, .min = 0, .max = 1000},
    {.key = "pause_ms", .type = BENCH_INT, .def = 0, .min = 0, .max = 60000},
    {.key = "reconnect", .type = BENCH_CHOICE, .choices = http_session_reconnects},
    {.key = "resume", .type = BENCH_INT, .def = 1, .min = 0, .max = 1},
    {.key = "resolve", .type = BENCH_CHOICE, .choices = http_server_resolves},
    {.key = "qos", .type = BENCH_INT, .def = 0, .min = 0, .max = 2},
    {.key = "turn", .type = BENCH_INT, .min = 0, .max = 99}, /* a name, nothing more */
    {.key = "timeout_ms", .type = BENCH_INT, .def = 10000, .min = 100, .max = 60000},
};

static const char *const COLUMNS[] = {"phase",   "read",   "received_us", "dns_us",
                                      "tcp_us",  "tls_us", "http_us",     "published_us",
                                      "outcome", "reused", "resumed",     "profile"};

const bench_t bench_http_gateway = {
    .name = "http_gateway",
    .parameters = PARAMETERS,
    .parameter_count = sizeof(PARAMETERS) / sizeof(PARAMETERS[0]),
    .columns = COLUMNS,
    .column_count = sizeof(COLUMNS) / sizeof(COLUMNS[0]),
    .run = run,
};
