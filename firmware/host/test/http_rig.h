/* SPDX-License-Identifier: Apache-2.0 */
/* A server that does as it is told, and a client of it, for the tests of http_link. */
#pragma once

#include "expect.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "esp_timer.h"
#include "http_link/link.h"
#include "lwip/sockets.h"

enum { SOON_MS = 150, LONG_MS = 10000, DRIP_US = 10000 };

#define OK_ANSWER "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

/* ---- the server: a step for each request ---- */

typedef enum {
    KEEP,  /* and await the next request */
    CLOSE, /* once it is sent */
    HANG,  /* until the client has closed */
    DRIP,  /* a byte at a time, the last one over and over */
    FLOOD, /* over and over */
} then_t;

typedef struct {
    const char *answer;
    then_t then;
} step_t;

typedef struct {
    int listener;
    uint16_t port;
    const step_t *steps;
    size_t step_count;
    atomic_int connections;
    pthread_t thread;
} server_t;

/* Ends with the request, or with the connection: false. */
static inline bool read_request(int fd) {
    char window[4] = {0};
    while (recv(fd, &window[3], 1, 0) == 1) {
        if (memcmp(window, "\r\n\r\n", sizeof(window)) == 0) {
            return true;
        }
        memmove(window, window + 1, 3);
    }
    return false;
}

static inline bool send_all(int fd, const char *text, size_t length) {
    return send(fd, text, length, MSG_NOSIGNAL) == (ssize_t)length;
}

static inline void drip(int fd, const char *text) {
    while (send_all(fd, text, 1)) {
        text += text[1] != '\0' ? 1 : 0;
        usleep(DRIP_US);
    }
}

/* Whether the connection is still of use. */
static inline bool take_step(int fd, const step_t *step) {
    size_t length = strlen(step->answer);
    if (step->then == DRIP) {
        drip(fd, step->answer);
        return false;
    }
    bool sent = length == 0 || send_all(fd, step->answer, length);
    while (sent && step->then == FLOOD) {
        sent = send_all(fd, step->answer, length);
    }
    if (sent && step->then == HANG) {
        read_request(fd);
    }
    return sent && step->then == KEEP;
}

static inline void *serve(void *argument) {
    server_t *server = argument;
    int fd = -1;
    for (size_t i = 0; i < server->step_count; i++) {
        while (fd < 0 || !read_request(fd)) {
            if (fd >= 0) {
                close(fd);
            }
            fd = accept(server->listener, NULL, NULL);
            if (fd < 0) {
                return NULL; /* the test is over */
            }
            server->connections++;
        }
        if (!take_step(fd, &server->steps[i])) {
            close(fd);
            fd = -1;
        }
    }
    if (fd >= 0) {
        read_request(fd);
        close(fd);
    }
    return NULL;
}

static inline void open_listener(server_t *server) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    server->listener = socket(AF_INET, SOCK_STREAM, 0);
    EXPECT(bind(server->listener, (struct sockaddr *)&address, size) == 0);
    EXPECT(getsockname(server->listener, (struct sockaddr *)&address, &size) == 0);
    server->port = ntohs(address.sin_port);
}

static inline void start_server(server_t *server, const step_t *steps, size_t count) {
    *server = (server_t){.steps = steps, .step_count = count};
    open_listener(server);
    EXPECT(listen(server->listener, 8) == 0);
    EXPECT(pthread_create(&server->thread, NULL, serve, server) == 0);
}

static inline void stop_server(server_t *server) {
    shutdown(server->listener, SHUT_RDWR);
    pthread_join(server->thread, NULL);
    close(server->listener);
}

/* ---- the client ---- */

static inline http_link_config_t config_of(uint16_t port, uint8_t free_max) {
    return (http_link_config_t){
        .host = "127.0.0.1", .port = port, .sockets_max = 2, .free_max = free_max, .keep_alive_ms = LONG_MS};
}

typedef struct {
    server_t server;
    http_link_t link;
    http_result_t result;
} rig_t;

static inline void begin(rig_t *rig, const step_t *steps, size_t count) {
    start_server(&rig->server, steps, count);
    const http_link_config_t config = config_of(rig->server.port, 2);
    EXPECT(http_link_create(&rig->link, &config) == ESP_OK);
}

static inline void end(rig_t *rig) {
    http_link_delete(&rig->link);
    stop_server(&rig->server);
}

#define BEGIN(rig, steps) begin(rig, steps, sizeof(steps) / sizeof((steps)[0]))

static inline http_outcome_t get(rig_t *rig, uint32_t timeout_ms) {
    http_link_get(&rig->link, "/probe/01", "1-1-1", timeout_ms, &rig->result);
    return rig->result.outcome;
}
