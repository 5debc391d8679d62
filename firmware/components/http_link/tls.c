/* SPDX-License-Identifier: Apache-2.0 */
/* TLS on a connected socket, full or resumed. */
#include <string.h>

#include "esp_timer.h"
#include "private.h"

/* The master secret of a TLS 1.2 session; none where no session was offered. */
typedef struct {
    bool is_set;
    unsigned char bytes[sizeof(((mbedtls_ssl_session *)NULL)->MBEDTLS_PRIVATE(master))];
} master_secret_t;

/* Begins the handshake. Mbed TLS takes a session once, before the first byte, and copies it: from then on
 * esp_tls must not be given it again, so it is not in the configuration that goes on. */
static int begin(http_link_t *link, const char *host, const esp_tls_cfg_t *config, esp_tls_t *tls,
                 master_secret_t *offered) {
    esp_tls_cfg_t first = *config;
    xSemaphoreTake(link->session_lock, portMAX_DELAY); /* another task may replace the session */
    first.client_session = link->config.resume ? link->session : NULL;
    if (first.client_session != NULL) {
        offered->is_set = true;
        memcpy(offered->bytes, first.client_session->saved_session.MBEDTLS_PRIVATE(master),
               sizeof(offered->bytes));
    }
    int done = esp_tls_conn_new_async(host, (int)strlen(host), link->config.port, &first, tls);
    xSemaphoreGive(link->session_lock);
    return done;
}

static int shake_hands(http_link_t *link, const http_call_t *call, const http_connection_t *connection,
                       master_secret_t *offered) {
    const char *host = link->config.host;
    const esp_tls_cfg_t config = {
        .cacert_buf = (const unsigned char *)link->config.ca_pem,
        .cacert_bytes = (unsigned)strlen(link->config.ca_pem) + 1,
        /* the socket does not block, and is awaited here, with this call's deadline */
        .non_block = false,
    };
    esp_tls_set_conn_state(connection->tls, ESP_TLS_CONNECTING); /* that is, look no further after TCP */
    int done = begin(link, host, &config, connection->tls, offered);
    while (done == 0 && http_call_wait(call, connection->fd, false)) {
        done = esp_tls_conn_new_async(host, (int)strlen(host), link->config.port, &config, connection->tls);
    }
    return done;
}

static void note_error(const http_call_t *call, const http_connection_t *connection) {
    esp_tls_error_handle_t error = NULL;
    if (esp_tls_get_error_handle(connection->tls, &error) == ESP_OK) {
        call->result->tls_error = esp_tls_get_and_clear_last_error(error, &call->result->tls_stack_error,
                                                                   &call->result->certificate_flags);
    }
}

/* Whether a handshake was abbreviated, which Mbed TLS has no call for. A resumed TLS 1.2 session keeps its
 * master secret, a full handshake makes a new one (RFC 5246, F.1.4). */
static bool is_resumed(const master_secret_t *offered, const mbedtls_ssl_session *agreed) {
    return offered->is_set &&
           memcmp(offered->bytes, agreed->MBEDTLS_PRIVATE(master), sizeof(offered->bytes)) == 0;
}

/* Keep what the server gave us for the next time. */
static void keep_session(http_link_t *link, http_result_t *result, esp_tls_t *tls,
                         const master_secret_t *offered) {
    esp_tls_client_session_t *agreed = esp_tls_get_client_session(tls);
    if (agreed == NULL) {
        return;
    }
    result->resumed = is_resumed(offered, &agreed->saved_session);
    xSemaphoreTake(link->session_lock, portMAX_DELAY);
    esp_tls_client_session_t *before = link->session;
    link->session = agreed;
    xSemaphoreGive(link->session_lock);
    esp_tls_free_client_session(before);
}

http_outcome_t http_tls_start(http_link_t *link, http_call_t *call, http_connection_t *connection) {
    int64_t start_us = esp_timer_get_time();
    master_secret_t offered = {0};
    int done = shake_hands(link, call, connection, &offered);
    call->result->tls_us = http_elapsed_us(start_us);
    if (done == 0) {
        return HTTP_OUTCOME_TIMEOUT;
    }
    if (done < 0) {
        note_error(call, connection);
        return HTTP_OUTCOME_TLS_FAILED;
    }
    if (link->config.resume) {
        keep_session(link, call->result, connection->tls, &offered);
    }
    return HTTP_OUTCOME_OK;
}
