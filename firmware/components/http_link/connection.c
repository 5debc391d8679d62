/* SPDX-License-Identifier: Apache-2.0 */
/* From a name to a connection, and bytes over it. */
#include <errno.h>
#include <string.h>

#include "esp_timer.h"
#include "lwip/netdb.h"
#include "lwip/sockets.h"
#include "private.h"

static bool look_up(const char *host, char address[HTTP_LINK_ADDRESS_SIZE]) {
    const struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    if (getaddrinfo(host, NULL, &hints, &found) != 0 || found == NULL) {
        return false;
    }
    const struct sockaddr_in *first = (const struct sockaddr_in *)(const void *)found->ai_addr;
    bool fits = inet_ntop(AF_INET, &first->sin_addr, address, HTTP_LINK_ADDRESS_SIZE) != NULL;
    freeaddrinfo(found);
    return fits;
}

static http_outcome_t resolve(const http_call_t *call, char address[HTTP_LINK_ADDRESS_SIZE]) {
    int64_t start_us = esp_timer_get_time();
    if (http_call_over(call)) {
        return HTTP_OUTCOME_TIMEOUT;
    }
    bool found = look_up(call->link->config.host, address);
    call->result->dns_us = http_elapsed_us(start_us);
    if (found && !http_call_over(call)) {
        return HTTP_OUTCOME_OK;
    }
    return found ? HTTP_OUTCOME_TIMEOUT : HTTP_OUTCOME_UNREACHABLE;
}

/* esp_tls begins to connect; it is awaited here, because esp_tls goes on to TLS in the same call in which it
 * finds the connection made, and never looks whether it was refused. */
static http_outcome_t await_connection(http_call_t *call, int fd) {
    if (!http_call_wait(call, fd, true)) {
        return HTTP_OUTCOME_TIMEOUT;
    }
    socklen_t size = sizeof(call->result->error);
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &call->result->error, &size) != 0) {
        call->result->error = errno;
    }
    return call->result->error == 0 ? HTTP_OUTCOME_OK : HTTP_OUTCOME_UNREACHABLE;
}

static http_outcome_t connect_tcp(http_call_t *call, const char *address, http_connection_t *connection) {
    const esp_tls_cfg_t plain = {.is_plain_tcp = true, .non_block = true};
    int64_t start_us = esp_timer_get_time();
    errno = 0;
    int begun = esp_tls_conn_new_async(address, (int)strlen(address), call->link->config.port, &plain,
                                       connection->tls);
    http_outcome_t outcome = HTTP_OUTCOME_UNREACHABLE;
    if (begun >= 0 && esp_tls_get_conn_sockfd(connection->tls, &connection->fd) == ESP_OK) {
        outcome = await_connection(call, connection->fd);
    } else {
        call->result->error =
            errno != 0 ? errno : EIO; /* esp_tls keeps that of a connect() in progress only */
    }
    call->result->tcp_us = http_elapsed_us(start_us);
    return outcome;
}

static void set_nodelay(int fd) {
    int value = 1; /* a request is one small segment, which nothing may hold back */
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &value, sizeof(value));
}

http_outcome_t http_connection_open(http_link_t *link, http_call_t *call, http_connection_t *connection) {
    char address[HTTP_LINK_ADDRESS_SIZE];
    *connection = (http_connection_t){.fd = -1};
    http_outcome_t outcome = resolve(call, address);
    if (outcome != HTTP_OUTCOME_OK) {
        return outcome;
    }
    connection->tls = esp_tls_init();
    if (connection->tls == NULL) {
        call->result->error = ENOMEM;
        return HTTP_OUTCOME_UNREACHABLE;
    }
    outcome = connect_tcp(call, address, connection);
    if (outcome == HTTP_OUTCOME_OK) {
        set_nodelay(connection->fd);
        outcome = link->config.ca_pem != NULL ? http_tls_start(link, call, connection) : HTTP_OUTCOME_OK;
    }
    if (outcome != HTTP_OUTCOME_OK) {
        http_connection_close(connection);
    }
    return outcome;
}

void http_connection_close(http_connection_t *connection) {
    if (connection->tls != NULL) {
        esp_tls_conn_destroy(connection->tls);
    }
    *connection = (http_connection_t){.fd = -1};
}

bool http_connection_is_quiet(const http_connection_t *connection) {
    char byte = 0;
    ssize_t n = recv(connection->fd, &byte, sizeof(byte), MSG_PEEK | MSG_DONTWAIT);
    return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

/* What a read or write that did nothing waits for: 1 to write, 0 to read, -1 nothing, it is broken. */
static int wanted(const http_link_t *link, ssize_t result, bool writing) {
    if (link->config.ca_pem == NULL) {
        bool again = errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
        return again ? writing : -1;
    }
    if (result == ESP_TLS_ERR_SSL_WANT_WRITE) {
        return 1;
    }
    return result == ESP_TLS_ERR_SSL_WANT_READ ? 0 : -1;
}

int http_connection_read(const http_call_t *call, http_connection_t *connection, char *data, size_t size) {
    while (!http_call_over(call)) {
        ssize_t n = esp_tls_conn_read(connection->tls, data, size);
        if (n >= 0) {
            return n > 0 ? (int)n : HTTP_CONNECTION_CLOSED;
        }
        int want = wanted(call->link, n, false);
        if (want < 0) {
            return HTTP_CONNECTION_CLOSED;
        }
        http_call_wait(call, connection->fd, want == 1);
    }
    return HTTP_CONNECTION_OVER;
}

int http_connection_write(const http_call_t *call, http_connection_t *connection, const char *data,
                          size_t length) {
    while (!http_call_over(call)) {
        ssize_t n = esp_tls_conn_write(connection->tls, data, length);
        if (n == (ssize_t)length) {
            return 1;
        }
        int want = n >= 0 ? 1 : wanted(call->link, n, true);
        if (want < 0) {
            return HTTP_CONNECTION_CLOSED;
        }
        data += n > 0 ? n : 0;
        length -= n > 0 ? (size_t)n : 0;
        http_call_wait(call, connection->fd, want == 1);
    }
    return HTTP_CONNECTION_OVER;
}
