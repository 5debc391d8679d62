/* SPDX-License-Identifier: Apache-2.0 */
/* A few connections to one server, the idle ones kept for the next GET. */
#include "esp_timer.h"
#include "private.h"

esp_err_t http_link_create(http_link_t *link, const http_link_config_t *config) {
    *link = (http_link_t){.config = *config};
    link->lock = xSemaphoreCreateMutex();
    link->session_lock = xSemaphoreCreateMutex();
    link->sockets = xSemaphoreCreateCounting(config->sockets_max, config->sockets_max);
    bool whole = link->lock != NULL && link->session_lock != NULL && link->sockets != NULL;
    return whole ? ESP_OK : ESP_ERR_NO_MEM;
}

void http_link_drop(http_link_t *link) {
    xSemaphoreTake(link->lock, portMAX_DELAY);
    while (link->idle_count > 0) {
        http_connection_close(&link->idle[--link->idle_count]);
    }
    xSemaphoreGive(link->lock);
}

void http_link_delete(http_link_t *link) {
    if (link->lock != NULL) {
        http_link_drop(link);
        vSemaphoreDelete(link->lock);
    }
    if (link->session_lock != NULL) {
        vSemaphoreDelete(link->session_lock);
    }
    if (link->sockets != NULL) {
        vSemaphoreDelete(link->sockets);
    }
    esp_tls_free_client_session(link->session);
    *link = (http_link_t){0};
}

/* The first one is idle the longest. Call it with the lock. */
static void close_expired(http_link_t *link) {
    int64_t oldest_us = esp_timer_get_time() - (int64_t)link->config.keep_alive_ms * 1000;
    size_t expired = 0;
    while (expired < link->idle_count && link->idle[expired].idle_since_us <= oldest_us) {
        http_connection_close(&link->idle[expired++]);
    }
    for (size_t i = expired; i < link->idle_count; i++) {
        link->idle[i - expired] = link->idle[i];
    }
    link->idle_count -= expired;
}

/* The latest used connection that the server has not closed yet. */
static bool take_idle(http_link_t *link, http_connection_t *connection) {
    bool taken = false;
    xSemaphoreTake(link->lock, portMAX_DELAY);
    close_expired(link);
    while (!taken && link->idle_count > 0) {
        *connection = link->idle[--link->idle_count];
        taken = http_connection_is_quiet(connection);
        if (!taken) {
            http_connection_close(connection);
        }
    }
    xSemaphoreGive(link->lock);
    return taken;
}

static bool await_socket(const http_link_t *link, const http_call_t *call) {
    while (!http_call_over(call)) {
        if (xSemaphoreTake(link->sockets, pdMS_TO_TICKS(100)) == pdTRUE) {
            return true;
        }
    }
    return false;
}

http_outcome_t http_pool_take(http_link_t *link, http_call_t *call, http_connection_t *connection) {
    *connection = (http_connection_t){.fd = -1};
    if (!await_socket(link, call)) {
        return HTTP_OUTCOME_TIMEOUT;
    }
    call->result->reused = take_idle(link, connection);
    http_outcome_t outcome =
        call->result->reused ? HTTP_OUTCOME_OK : http_connection_open(link, call, connection);
    if (outcome != HTTP_OUTCOME_OK) {
        xSemaphoreGive(link->sockets);
    }
    return outcome;
}

void http_pool_give(http_link_t *link, http_connection_t *connection, bool reusable) {
    xSemaphoreTake(link->lock, portMAX_DELAY);
    if (reusable && link->idle_count < link->config.free_max && link->idle_count < HTTP_LINK_MAX_SOCKETS) {
        connection->idle_since_us = esp_timer_get_time();
        link->idle[link->idle_count++] = *connection;
        *connection = (http_connection_t){.fd = -1};
    }
    xSemaphoreGive(link->lock);
    http_connection_close(connection); /* unless it was kept */
    xSemaphoreGive(link->sockets);
}
