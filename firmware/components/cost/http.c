/* SPDX-License-Identifier: Apache-2.0 */
/* One GET over a connection that is kept, with all that both ends do for it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http_link/link.h"
#include "lwip/sockets.h"
#include "private.h"

enum { REQUEST_BYTES = 512, ANSWER_BYTES = COST_MAX_PAYLOAD_BYTES + 128, KEEP_ALIVE_MS = 60000 };

typedef struct {
    http_link_t link;
    cost_peer_t peer;
    size_t answer_bytes;
    char answer[ANSWER_BYTES];
} http_t;

/* A request of this client has no body: it ends with an empty line. */
static void serve_answers(int fd, void *context) {
    const http_t *http = context;
    static char request[REQUEST_BYTES];
    size_t have = 0;
    for (;;) {
        ssize_t got = recv(fd, request + have, sizeof(request) - 1 - have, 0);
        if (got <= 0) {
            return;
        }
        have += (size_t)got;
        request[have] = '\0';
        if (strstr(request, "\r\n\r\n") != NULL) {
            have = 0;
            if (send(fd, http->answer, http->answer_bytes, 0) != (ssize_t)http->answer_bytes) {
                return;
            }
        }
    }
}

static void write_answer(http_t *http, size_t body_bytes) {
    int length = snprintf(http->answer, sizeof(http->answer),
                          "HTTP/1.1 200 OK\r\nContent-Length: %u\r\nConnection: keep-alive\r\n\r\n",
                          (unsigned)body_bytes);
    memset(http->answer + length, 'x', body_bytes);
    http->answer_bytes = (size_t)length + body_bytes;
}

static esp_err_t open_http(cost_t *cost) {
    const http_link_config_t config = {.host = COST_HOST,
                                       .port = COST_HTTP_PORT,
                                       .sockets_max = 1,
                                       .free_max = 1,
                                       .keep_alive_ms = KEEP_ALIVE_MS};
    http_t *http = calloc(1, sizeof(*http));
    cost->own = http;
    if (http == NULL) {
        return ESP_ERR_NO_MEM;
    }
    write_answer(http, cost->payload_bytes);
    http->peer =
        (cost_peer_t){.port = COST_HTTP_PORT, .serve = serve_answers, .context = http, .listener = -1};
    esp_err_t err = http_link_create(&http->link, &config);
    err = err == ESP_OK ? cost_loopback() : err;
    return err == ESP_OK ? cost_peer_start(&http->peer, cost->samples) : err;
}

static bool repeat_http(cost_t *cost) {
    http_t *http = cost->own;
    http_result_t result;
    cost_mark(&cost->begin);
    http_link_get(&http->link, "/cost", NULL, COST_TIMEOUT_MS, &result);
    cost_mark(&cost->end);
    return result.outcome == HTTP_OUTCOME_OK;
}

static void close_http(cost_t *cost) {
    http_t *http = cost->own;
    if (http == NULL) {
        return;
    }
    http_link_delete(&http->link);
    cost_peer_stop(&http->peer);
    free(http);
}

const cost_part_t cost_http_get = {.open = open_http, .repeat = repeat_http, .close = close_http};
