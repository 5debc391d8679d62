/* SPDX-License-Identifier: Apache-2.0 */
/* A client of esp_tls.h driven line by line from stdin: tests/firmware/test_host_tls.py says what to do, this
 * program does it and prints what came back.
 *
 *   connect MODE HOST PORT key=value…   MODE sync | async | own; timeout_ms ca cert key name skip plain
 *                                       non_block resume (0, 1, twice)
 *   get PATH | echo BYTES | save | close
 *
 * `own` is a socket of the program's own that is given to esp-tls when it is connected. */
#include <arpa/inet.h>
#include <errno.h>

#include "esp_timer.h"
#include "esp_tls.h"
#include "expect.h"
#include "lwip/sockets.h"
#include "tls_options.h"

enum { DEADLINE_US = 10000000, CHUNK_BYTES = 16384 };

static esp_tls_t *s_tls;
static esp_tls_client_session_t *s_session;
static char s_states[64];

static void wait_for(int fd, bool to_write, int64_t wait_us) {
    struct timeval wait = {.tv_sec = wait_us / 1000000, .tv_usec = wait_us % 1000000};
    fd_set set;
    FD_ZERO(&set);
    FD_SET(fd, &set);
    select(fd + 1, to_write ? NULL : &set, to_write ? &set : NULL, NULL, &wait);
}

static int socket_of(esp_tls_t *tls) {
    int fd = -1;
    esp_tls_get_conn_sockfd(tls, &fd);
    return fd;
}

static void note_state(void) {
    esp_tls_conn_state_t state;
    size_t length = strlen(s_states);
    EXPECT(esp_tls_get_conn_state(s_tls, &state) == ESP_OK);
    if (length == 0 || s_states[length - 1] != (char)('0' + (int)state)) {
        snprintf(s_states + length, sizeof(s_states) - length, "%d", (int)state);
    }
}

/* As firmware polls it: a session is given until the handshake has begun. */
static int poll_connection(const char *host, int port) {
    int64_t deadline_us = esp_timer_get_time() + DEADLINE_US;
    int done;
    s_config.client_session = s_resume ? s_session : NULL;
    for (;;) {
        done = esp_tls_conn_new_async(host, (int)strlen(host), port, &s_config, s_tls);
        note_state();
        if (done != 0 || esp_timer_get_time() > deadline_us) {
            return done;
        }
        s_config.client_session = s_twice ? s_session : NULL;
        wait_for(socket_of(s_tls), false, 100000);
    }
}

static int connect_own(const char *host, int port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    inet_pton(AF_INET, host, &address.sin_addr);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    (void)connect(fd, (const struct sockaddr *)&address, sizeof(address));
    wait_for(fd, true, DEADLINE_US);
    EXPECT(esp_tls_set_conn_sockfd(s_tls, fd) == ESP_OK);
    EXPECT(esp_tls_set_conn_state(s_tls, ESP_TLS_CONNECTING) == ESP_OK);
    return poll_connection(host, port);
}

static int connect_sync(const char *host, int port) {
    s_config.client_session = s_resume ? s_session : NULL;
    int done = esp_tls_conn_new_sync(host, (int)strlen(host), port, &s_config, s_tls);
    note_state();
    return done;
}

static int do_connect(char *arguments) {
    char mode[8], host[64];
    int port = 0, used = 0;
    sscanf(arguments, "%7s %63s %d%n", mode, host, &port, &used);
    take_options(arguments + used);
    s_tls = esp_tls_init();
    s_states[0] = '\0';
    int done = strcmp(mode, "sync") == 0    ? connect_sync(host, port)
               : strcmp(mode, "async") == 0 ? poll_connection(host, port)
                                            : connect_own(host, port);
    esp_tls_error_handle_t error = NULL;
    int tls = 0, flags = 0, sock_errno = 0;
    EXPECT(esp_tls_get_error_handle(s_tls, &error) == ESP_OK);
    EXPECT(esp_tls_get_and_clear_error_type(error, ESP_TLS_ERR_TYPE_SYSTEM, &sock_errno) == ESP_OK);
    esp_err_t last = esp_tls_get_and_clear_last_error(error, &tls, &flags);
    printf("connect %d states=%s esp=%x tls=%x flags=%x errno=%d\n", done, s_states, (unsigned)last,
           (unsigned)tls, (unsigned)flags, sock_errno);
    return done;
}

/* What a call that moved nothing waits for; false: it is broken. */
static bool wait_as_told(ssize_t result, bool writing) {
    bool want_write = result == ESP_TLS_ERR_SSL_WANT_WRITE, want_read = result == ESP_TLS_ERR_SSL_WANT_READ;
    bool plain = s_config.is_plain_tcp && result < 0 && errno == EAGAIN;
    if (want_write || want_read || plain) {
        wait_for(socket_of(s_tls), plain ? writing : want_write, DEADLINE_US);
        return true;
    }
    return false;
}

static bool write_all(const char *data, size_t length) {
    while (length > 0) {
        ssize_t n = esp_tls_conn_write(s_tls, data, length);
        if (n < 0 && !wait_as_told(n, true)) {
            return false;
        }
        data += n > 0 ? n : 0;
        length -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

static ssize_t read_some(char *data, size_t size) {
    ssize_t n;
    do {
        n = esp_tls_conn_read(s_tls, data, size);
    } while (n < 0 && wait_as_told(n, false));
    return n;
}

/* Until the server closes; prints what it says of the session. */
static void do_get(const char *path) {
    static char page[65536];
    char request[128];
    size_t length = 0;
    ssize_t n = 1;
    snprintf(request, sizeof(request), "GET %s HTTP/1.0\r\n\r\n", path);
    EXPECT(write_all(request, strlen(request)));
    while (n > 0 && length < sizeof(page) - 1) {
        n = read_some(page + length, sizeof(page) - 1 - length);
        length += n > 0 ? (size_t)n : 0;
    }
    page[length] = '\0';
    printf("get last=%zd bytes=%zu reused=%d new=%d\n", n, length, strstr(page, "Reused, TLSv1.2") != NULL,
           strstr(page, "New, TLSv1.2") != NULL);
}

/* Send a pattern, read as many bytes back: one after the other in pieces, as the peer gives them back. */
static void do_echo(size_t bytes) {
    static char out[CHUNK_BYTES], in[CHUNK_BYTES];
    for (size_t i = 0; i < CHUNK_BYTES; i++) {
        out[i] = (char)(i * 7 + i / 251);
    }
    size_t right = 0;
    while (right < bytes) {
        size_t piece = bytes - right < CHUNK_BYTES ? bytes - right : CHUNK_BYTES, read = 0;
        EXPECT(write_all(out, piece));
        while (read < piece) {
            ssize_t n = read_some(in + read, piece - read);
            EXPECT(n > 0);
            read += (size_t)n;
        }
        EXPECT(memcmp(in, out, piece) == 0);
        right += piece;
    }
    printf("echo %zu pending=%zd\n", right, esp_tls_get_bytes_avail(s_tls));
}

static void do_save(void) {
    esp_tls_client_session_t *agreed = esp_tls_get_client_session(s_tls);
    int same = -1;
    if (agreed != NULL && s_session != NULL) {
        same = memcmp(agreed->saved_session.MBEDTLS_PRIVATE(master),
                      s_session->saved_session.MBEDTLS_PRIVATE(master), 48) == 0;
    }
    if (agreed != NULL) {
        esp_tls_free_client_session(s_session);
        s_session = agreed;
    }
    printf("save %d same=%d\n", agreed != NULL, same);
}

static void do_close(void) {
    if (s_tls != NULL) {
        esp_tls_conn_destroy(s_tls);
    }
    s_tls = NULL;
}

static void do_command(const char *command, char *arguments) {
    if (strcmp(command, "connect") == 0) {
        do_connect(arguments);
    } else if (strcmp(command, "get") == 0) {
        do_get(arguments);
    } else if (strcmp(command, "echo") == 0) {
        do_echo((size_t)atoi(arguments));
    } else if (strcmp(command, "save") == 0) {
        do_save();
    } else if (strcmp(command, "close") == 0) {
        do_close();
    }
}

int main(void) {
    char line[1024];
    setvbuf(stdout, NULL, _IOLBF, 0);
    ESP_ERROR_CHECK(esp_timer_init());
    while (fgets(line, sizeof(line), stdin) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        char *arguments = line + strcspn(line, " ");
        if (*arguments != '\0') {
            *arguments++ = '\0';
        }
        do_command(line, arguments);
    }
    do_close();
    esp_tls_free_client_session(s_session);
    return 0;
}
