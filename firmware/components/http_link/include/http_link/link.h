/* SPDX-License-Identifier: Apache-2.0 */
/* One GET after another over a small pool of connections, and how long each part of it took.
 *
 * It stands on esp_tls and http_parser, not on esp_http_client, which does not tell where the time until a
 * connection goes.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "esp_err.h"
#include "esp_tls.h"
#include "freertos/FreeRTOS.h"
#include "freertos/semphr.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    HTTP_LINK_MAX_SOCKETS = 4, /* of a pool; a chip's lwIP has ten for everything */
    HTTP_LINK_MAX_BODY_BYTES = 4096,
    HTTP_LINK_ADDRESS_SIZE = 16, /* IPv4 in dotted decimals */
};

/* Values of a column `outcome`. */
typedef enum {
    HTTP_OUTCOME_OK,
    HTTP_OUTCOME_TIMEOUT,     /* no byte of an answer until the deadline */
    HTTP_OUTCOME_UNREACHABLE, /* no address for the name, or no TCP connection */
    HTTP_OUTCOME_TLS_FAILED,
    HTTP_OUTCOME_NOT_HTTP,
    HTTP_OUTCOME_TRUNCATED, /* the connection ended before the answer did, or before it began */
    HTTP_OUTCOME_STATUS,    /* a whole answer, whose status is not 200 */
    HTTP_OUTCOME_ENDLESS,   /* an answer that had not ended at the deadline, or is too long */
    HTTP_OUTCOME_MQTT_LOST, /* the gateway's: the answer could not be published */
} http_outcome_t;

typedef struct {
    const char
        *host; /* name or address, looked up for each connection; what the certificate is made out to */
    const char *ca_pem; /* NULL: plain HTTP */
    uint16_t port;
    bool resume;            /* offer the last TLS session again */
    uint8_t sockets_max;    /* connections at once; a further GET waits. 1 .. HTTP_LINK_MAX_SOCKETS */
    uint8_t free_max;       /* idle connections kept; 0: `Connection: close`, a connection for each GET */
    uint32_t keep_alive_ms; /* idle ones are kept so long */
    bool (*cancelled)(void *context); /* looked at every 100 ms; then a GET comes back as if timed out */
    void *context;
} http_link_config_t;

typedef struct {
    esp_tls_t *tls;
    int fd;
    int64_t idle_since_us;
} http_connection_t;

typedef struct {
    http_link_config_t config;
    SemaphoreHandle_t lock;                        /* guards the idle ones */
    SemaphoreHandle_t sockets;                     /* counts those that are free to use */
    http_connection_t idle[HTTP_LINK_MAX_SOCKETS]; /* the last one is the latest used */
    size_t idle_count;
    SemaphoreHandle_t session_lock;    /* guards what follows: a handshake's first step holds it, which takes
                                          longer than a request may wait for an idle connection */
    esp_tls_client_session_t *session; /* the last one, or NULL */
} http_link_t;

typedef struct {
    http_outcome_t outcome;
    bool reused;  /* the connection had carried a GET before */
    bool resumed; /* the TLS handshake was an abbreviated one */
    bool retried; /* the server had closed the connection to be reused: this is a second try on a fresh one */
    uint16_t status; /* of HTTP, 0 without an answer */
    uint32_t body_bytes;
    uint32_t dns_us, tcp_us, tls_us; /* 0 where the connection was there */
    uint32_t http_us;                /* from right before the request is written until its answer is whole */
    int error;                       /* errno of a connection that failed, or 0 */
    esp_err_t tls_error;             /* esp_tls's, Mbed TLS's and the certificate's flags, or 0 */
    int tls_stack_error, certificate_flags;
} http_result_t;

/* Returns ESP_ERR_NO_MEM; http_link_delete() afterwards all the same. `config` is copied, what it points to
 * is not. */
esp_err_t http_link_create(http_link_t *link, const http_link_config_t *config);

/* Not while a GET is going on. */
void http_link_delete(http_link_t *link);

/* GET `path` and read the answer, all within `timeout_ms`; `id` is sent as X-Request-Id, unless NULL. Any
 * task may call it, also several at once.
 *
 * One thing can take longer: getaddrinfo(), which cannot be told to give up, ends by lwIP's own deadline. */
void http_link_get(http_link_t *link, const char *path, const char *id, uint32_t timeout_ms,
                   http_result_t *result);

/* Close the idle connections. The TLS session is kept, as a client's is. */
void http_link_drop(http_link_t *link);

/* Why a GET failed, as a part of a sentence: "refused", "TLS failed: …". */
void http_link_explain(const http_result_t *result, char *text, size_t size);

/* Whether a GET failed because this board had no memory, for its connection or in TLS. */
bool http_link_lacked_memory(const http_result_t *result);

#ifdef __cplusplus
}
#endif
