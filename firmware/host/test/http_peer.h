/* SPDX-License-Identifier: Apache-2.0 */
/* An HTTP server on the loopback that answers what it is told, and keeps what it was asked. */
#pragma once

#include <stdarg.h>

#include "idf_check.h"
#include "socket_rig.h"

#pragma GCC diagnostic ignored "-Wmissing-field-initializers" /* a turn may end where it has all it needs */

typedef struct {
    const char *answer; /* NULL: none, until the client closes */
    bool closes;        /* after the answer */
    size_t bytes;       /* of the answer; 0: it is a text */
} turn_t;

enum { PEER_ASKED_BYTES = 16384, PEER_PRIORITY = 6 };

static char s_asked[PEER_ASKED_BYTES]; /* all requests */
static const char *s_last = s_asked;   /* the last one */
static volatile int s_connections;
static int s_listener = -1;
static const turn_t *s_turns;
static volatile int s_turns_left;

static inline int peer_port(void) {
    return ntohs(address_of(s_listener).sin_port);
}

/* A text with what a test wants in it; kept until the next but seven. */
__attribute__((format(printf, 1, 2))) static inline const char *text(const char *format, ...) {
    static char texts[8][1024];
    static int next;
    char *kept = texts[next++ % 8];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(kept, sizeof texts[0], format, arguments);
    va_end(arguments);
    return kept;
}

static inline const char *url(const char *path) {
    return text("http://127.0.0.1:%d%s", peer_port(), path);
}

/* Whether what came since `start` is a whole request. */
static inline bool peer_has_request(const char *start) {
    const char *end = strstr(start, "\r\n\r\n");
    const char *length = strstr(start, "Content-Length: ");
    if (end == NULL) {
        return false;
    }
    if (strstr(start, "Transfer-Encoding: chunked") != NULL) {
        return strstr(end, "0\r\n\r\n") != NULL;
    }
    return length == NULL || length > end || strlen(end + 4) >= (size_t)atoi(length + 16);
}

static inline bool peer_take_request(int connection) {
    const char *start = s_asked + strlen(s_asked);
    s_last = start;
    while (!peer_has_request(start)) {
        size_t used = strlen(s_asked);
        ssize_t n = recv(connection, s_asked + used, sizeof s_asked - used - 1, 0);
        if (n <= 0) {
            return false;
        }
        s_asked[used + (size_t)n] = '\0';
    }
    return true;
}

static inline void peer_wait_for_end(int connection) {
    char dropped[256];
    while (recv(connection, dropped, sizeof dropped, 0) > 0) {
    }
    close(connection);
}

/* Who has read enough may have closed. */
static inline void peer_answer(int connection, const char *answer, size_t bytes) {
    ssize_t n = 1;
    for (size_t sent = 0; sent < bytes && n > 0; sent += (size_t)(n > 0 ? n : 0)) {
        n = send(connection, answer + sent, bytes - sent, 0);
    }
}

static inline void peer_serve(void *unused) {
    (void)unused;
    int connection = -1;
    while (s_turns_left > 0) {
        if (connection < 0) {
            connection = accept(s_listener, NULL, NULL);
            CHECK(connection >= 0);
            s_connections++;
        }
        if (!peer_take_request(connection)) {
            close(connection);
            connection = -1;
            continue;
        }
        const turn_t *turn = s_turns++;
        s_turns_left--;
        if (turn->answer != NULL) {
            peer_answer(connection, turn->answer, turn->bytes > 0 ? turn->bytes : strlen(turn->answer));
        }
        if (turn->closes) {
            close(connection);
            connection = -1;
        }
    }
    if (connection >= 0) {
        peer_wait_for_end(connection);
    }
    close(s_listener);
    s_listener = -1;
    vTaskDelete(NULL);
}

/* Begins to serve these turns; the port is another one each time. */
static inline void peer_start(const turn_t *turns, int count) {
    CHECK_SOON(s_listener < 0); /* the last test's has ended */
    s_asked[0] = '\0';
    s_last = s_asked;
    s_connections = 0;
    s_turns = turns;
    s_turns_left = count;
    int listener = tcp();
    struct sockaddr_in any = {.sin_family = AF_INET}; /* all of 127.0.0.0/8 reaches it */
    CHECK_EQUAL(bind(listener, (struct sockaddr *)&any, sizeof any), 0);
    CHECK_EQUAL(listen(listener, 4), 0);
    s_listener = listener;
    spawn(peer_serve, NULL, PEER_PRIORITY, tskNO_AFFINITY);
}

#define PEER_START(turns) peer_start(turns, (int)(sizeof(turns) / sizeof((turns)[0])))

#define CHECK_TEXT(actual, wanted)                                                                           \
    do {                                                                                                     \
        const char *actual_ = (actual);                                                                      \
        const char *wanted_ = (wanted);                                                                      \
        if (strcmp(actual_, wanted_) != 0) {                                                                 \
            fprintf(stderr, "%s:%d: '%s', not '%s'\n", __FILE__, __LINE__, actual_, wanted_);                \
            _exit(1);                                                                                        \
        }                                                                                                    \
    } while (0)
