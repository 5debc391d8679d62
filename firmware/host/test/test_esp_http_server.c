/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP server: what it makes of requests, what it answers, and what it keeps for a connection. */
#include <stdarg.h>

#include "esp_event.h"
#include "esp_http_server.h"
#include "esp_tls_crypto.h"
#include "socket_rig.h"

static httpd_handle_t s_server;
static uint16_t s_port;
static int s_freed;
static volatile int s_works;

static uint16_t unused_port(int type) {
    int fd = socket(AF_INET, type, 0);
    bind_loopback(fd);
    const uint16_t port = ntohs(address_of(fd).sin_port);
    close(fd);
    return port;
}

static httpd_config_t config_of(void) {
    httpd_config_t config = HTTPD_DEFAULT_CONFIG();
    config.server_port = s_port = unused_port(SOCK_STREAM);
    config.ctrl_port = unused_port(SOCK_DGRAM);
    config.max_open_sockets = 3;
    config.max_uri_handlers = 6;
    return config;
}

static void start(const httpd_config_t *config) {
    CHECK_EQUAL(httpd_start(&s_server, config), ESP_OK);
}

static void stop(void) {
    CHECK_EQUAL(httpd_stop(s_server), ESP_OK);
}

static void add(const char *uri, httpd_method_t method, esp_err_t (*handler)(httpd_req_t *)) {
    const httpd_uri_t entry = {.uri = uri, .method = method, .handler = handler, .user_ctx = "own"};
    CHECK_EQUAL(httpd_register_uri_handler(s_server, &entry), ESP_OK);
}

static int client(void) {
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(s_port)};
    const struct timeval patience = {.tv_sec = 10};
    int fd = tcp();
    CHECK_EQUAL(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
    CHECK_EQUAL(connect(fd, (const struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static void say(int fd, const char *text) {
    CHECK_EQUAL(send(fd, text, strlen(text), 0), (ssize_t)strlen(text));
}

/* Exactly this comes. */
static void expect(int fd, const char *wanted) {
    char got[2048] = "";
    size_t used = 0;
    while (used < strlen(wanted)) {
        ssize_t n = recv(fd, got + used, strlen(wanted) - used, 0);
        if (n <= 0) {
            break;
        }
        used += (size_t)n;
        got[used] = '\0';
    }
    if (strcmp(got, wanted) != 0) {
        fprintf(stderr, "answered '%s', not '%s'\n", got, wanted);
        _exit(1);
    }
}

static void expect_end(int fd) {
    char byte;
    CHECK_EQUAL(recv(fd, &byte, 1, 0), 0);
    close(fd);
}

/* A request on a connection of its own, and all of the answer where the server closes after it. */
static void ask(const char *request, const char *answer, bool closes) {
    int fd = client();
    say(fd, request);
    expect(fd, answer);
    if (closes) {
        expect_end(fd);
    } else {
        close(fd);
    }
}

static esp_err_t hello(httpd_req_t *request) {
    CHECK(strcmp(request->user_ctx, "own") == 0);
    return httpd_resp_sendstr(request, "hello");
}

#define HELLO "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\r\nhello"
/* Path and method choose the handler; the answer's head is ESP-IDF's, byte for byte. */
static void test_uris(void) {
    httpd_config_t config = config_of();
    start(&config);
    add("/hello", HTTP_GET, hello);
    add("/any", (httpd_method_t)HTTP_ANY, hello);
    const httpd_uri_t again = {.uri = "/hello", .method = HTTP_GET, .handler = hello};
    CHECK_EQUAL(httpd_register_uri_handler(s_server, &again), ESP_ERR_HTTPD_HANDLER_EXISTS);
    ask("GET /hello?q=1 HTTP/1.1\r\nHost: x\r\n\r\n", HELLO, false);
    ask("PATCH /any HTTP/1.0\r\n\r\n", HELLO, false);
    ask("GET /hello/ HTTP/1.1\r\n\r\n",
        "HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\nContent-Length: 29\r\n\r\n"
        "Nothing matches the given URI",
        true);
    ask("PUT /hello HTTP/1.1\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 405 Method Not Allowed\r\nContent-Type: text/html\r\nContent-Length: 45\r\n\r\n"
        "Specified method is invalid for this resource",
        true);
    CHECK_EQUAL(httpd_unregister_uri_handler(s_server, "/hello", HTTP_PUT), ESP_ERR_NOT_FOUND);
    CHECK_EQUAL(httpd_unregister_uri_handler(s_server, "/hello", HTTP_GET), ESP_OK);
    CHECK_EQUAL(httpd_unregister_uri(s_server, "/hello"), ESP_ERR_NOT_FOUND);
    ask("GET /any HTTP/1.1\r\n\r\n", HELLO, false); /* the others close ranks */
    stop();
}

static esp_err_t inspect(httpd_req_t *request) {
    char text[64], value[16];
    size_t size = sizeof value;
    CHECK_EQUAL(httpd_req_get_url_query_len(request), 23);
    CHECK_EQUAL(httpd_req_get_url_query_str(request, text, 23), ESP_ERR_HTTPD_RESULT_TRUNC);
    CHECK_EQUAL(httpd_req_get_url_query_str(request, text, sizeof text), ESP_OK);
    CHECK(strcmp(text, "one=1&two=second&three=") == 0);
    CHECK_EQUAL(httpd_query_key_value(text, "TWO", value, sizeof value), ESP_OK);
    CHECK(strcmp(value, "second") == 0);
    CHECK_EQUAL(httpd_query_key_value(text, "two", value, 6), ESP_ERR_HTTPD_RESULT_TRUNC);
    CHECK_EQUAL(httpd_query_key_value(text, "three", value, sizeof value), ESP_OK);
    CHECK(value[0] == '\0');
    CHECK_EQUAL(httpd_query_key_value(text, "tw", value, sizeof value), ESP_ERR_NOT_FOUND);
    CHECK_EQUAL(httpd_req_get_hdr_value_len(request, "x-kind"), 7);
    CHECK_EQUAL(httpd_req_get_hdr_value_str(request, "X-Kind", text, sizeof text), ESP_OK);
    CHECK(strcmp(text, "a: b  c") == 0);
    CHECK_EQUAL(httpd_req_get_hdr_value_str(request, "X-Kind", text, 6), ESP_ERR_HTTPD_RESULT_TRUNC);
    CHECK_EQUAL(httpd_req_get_hdr_value_str(request, "X-None", text, sizeof text), ESP_ERR_NOT_FOUND);
    CHECK_EQUAL(httpd_req_get_hdr_value_len(request, "X-Empty"), 0);
    CHECK_EQUAL(httpd_req_get_cookie_val(request, "id", value, &size), ESP_OK);
    CHECK(strcmp(value, "42") == 0 && size == 3);
    size = 2;
    CHECK_EQUAL(httpd_req_get_cookie_val(request, "theme", value, &size), ESP_ERR_HTTPD_RESULT_TRUNC);
    CHECK_EQUAL(size, 5);
    esp_err_t err = httpd_resp_sendstr(request, "hello");
    CHECK_EQUAL(httpd_req_get_hdr_value_len(request, "X-Kind"), 0); /* an answer has begun */
    return err;
}

/* Query, headers and cookies, however the request is cut into pieces. */
static void test_query_and_headers(void) {
    static const char request[] = "GET /q?one=1&two=second&three= HTTP/1.1\r\nHost: x\r\nX-Empty:\r\n"
                                  "X-Kind:   a: b  c\r\nCookie: id=42; theme=dark\r\n\r\n";
    httpd_config_t config = config_of();
    start(&config);
    add("/q", HTTP_GET, inspect);
    ask(request, HELLO, false);
    int fd = client();
    const int one = 1;
    CHECK_EQUAL(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one), 0);
    for (size_t i = 0; i + 1 < sizeof request; i++) {
        CHECK_EQUAL(send(fd, request + i, 1, 0), 1);
    }
    expect(fd, HELLO);
    close(fd);
    stop();
}

static esp_err_t echo(httpd_req_t *request) {
    char piece[16];
    size_t left = request->content_len;
    CHECK_EQUAL(httpd_resp_set_type(request, HTTPD_TYPE_OCTET), ESP_OK);
    CHECK_EQUAL(httpd_resp_set_status(request, "201 Created"), ESP_OK);
    CHECK_EQUAL(httpd_resp_set_hdr(request, "X-Echo", "yes"), ESP_OK);
    while (left > 0) {
        int n = httpd_req_recv(request, piece, sizeof piece);
        CHECK(n > 0);
        left -= (size_t)n;
        CHECK_EQUAL(httpd_resp_send_chunk(request, piece, n), ESP_OK);
    }
    CHECK_EQUAL(httpd_req_recv(request, piece, sizeof piece), 0);
    return httpd_resp_send_chunk(request, NULL, 0);
}

static esp_err_t ignore_body(httpd_req_t *request) {
    return httpd_resp_sendstr(request, "hello");
}

/* A body is read in pieces and answered in chunks; what a handler leaves of it is dropped, and the connection
 * goes on. */
static void test_bodies(void) {
    httpd_config_t config = config_of();
    start(&config);
    add("/echo", HTTP_POST, echo);
    add("/ignore", HTTP_POST, ignore_body);
    int fd = client();
    say(fd, "POST /echo HTTP/1.1\r\nContent-Length: 20\r\n\r\n0123456789");
    say(fd, "abcdefghij");
    expect(fd, "HTTP/1.1 201 Created\r\nContent-Type: application/octet-stream\r\n"
               "Transfer-Encoding: chunked\r\nX-Echo: yes\r\n\r\n");
    char rest[64] = "";
    size_t used = 0;
    while (strstr(rest, "0\r\n\r\n") == NULL) {
        ssize_t n = recv(fd, rest + used, sizeof rest - 1 - used, 0);
        CHECK(n > 0);
        used += (size_t)n;
    }
    say(fd, "POST /ignore HTTP/1.1\r\nContent-Length: 300\r\n\r\n");
    expect(fd, HELLO);
    for (int i = 0; i < 30; i++) {
        say(fd, "0123456789");
    }
    say(fd, "POST /ignore HTTP/1.1\r\nContent-Length: 0\r\n\r\n");
    expect(fd, HELLO);
    close(fd);
    stop();
}

/* What is no request, too long, or of another version has its own error, and ends the connection. */
static void test_bad_requests(void) {
    static char request[2048];
    httpd_config_t config = config_of();
    config.max_uri_len = 100;
    config.max_req_hdr_len = 300;
    start(&config);
    ask("nonsense\r\n\r\n",
        "HTTP/1.1 400 Bad Request\r\nContent-Type: text/html\r\nContent-Length: 18\r\n\r\nBad request syntax",
        true);
    ask("GET / HTTP/2.0\r\n\r\n",
        "HTTP/1.1 505 Version Not Supported\r\nContent-Type: text/html\r\nContent-Length: 36\r\n\r\n"
        "HTTP version not supported by server",
        true);
    snprintf(request, sizeof request, "GET /%0120d HTTP/1.1\r\n\r\n", 1);
    ask(request,
        "HTTP/1.1 414 URI Too Long\r\nContent-Type: text/html\r\nContent-Length: 15\r\n\r\nURI is too long",
        false);
    snprintf(request, sizeof request, "GET / HTTP/1.1\r\nX: %0400d\r\n\r\n", 1);
    ask(request,
        "HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Type: text/html\r\nContent-Length: "
        "26\r\n\r\n"
        "Header fields are too long",
        false);
    ask("GET / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
        "HTTP/1.1 400 Bad Request\r\nContent-Type: text/html\r\nContent-Length: 18\r\n\r\nBad request syntax",
        true);
    stop();
}

static esp_err_t on_404(httpd_req_t *request, httpd_err_code_t error) {
    CHECK_EQUAL(error, HTTPD_404_NOT_FOUND);
    httpd_resp_send_err(request, error, "mine");
    return strcmp(request->uri, "/keep") == 0 ? ESP_OK : ESP_FAIL;
}

static esp_err_t fail(httpd_req_t *request) {
    httpd_resp_sendstr(request, "hello");
    return ESP_FAIL;
}

/* A product's own error handler decides whether the connection stays; a handler that fails ends it. */
static void test_errors(void) {
    static const char mine[] =
        "HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\nContent-Length: 4\r\n\r\nmine";
    httpd_config_t config = config_of();
    start(&config);
    add("/fail", HTTP_GET, fail);
    CHECK_EQUAL(httpd_register_err_handler(s_server, HTTPD_404_NOT_FOUND, on_404), ESP_OK);
    CHECK_EQUAL(httpd_register_err_handler(s_server, HTTPD_ERR_CODE_MAX, on_404), ESP_ERR_INVALID_ARG);
    int fd = client();
    say(fd, "GET /keep HTTP/1.1\r\n\r\n");
    expect(fd, mine);
    say(fd, "GET /drop HTTP/1.1\r\n\r\n");
    expect(fd, mine);
    expect_end(fd);
    ask("GET /fail HTTP/1.1\r\n\r\n", HELLO, true);
    stop();
}

static void count_free(void *ctx) {
    free(ctx);
    s_freed++;
}

static esp_err_t count(httpd_req_t *request) {
    char text[16];
    if (request->sess_ctx == NULL) {
        request->sess_ctx = calloc(1, sizeof(int));
        request->free_ctx = count_free;
    }
    int *counter = request->sess_ctx;
    snprintf(text, sizeof text, "%05d", ++*counter);
    return httpd_resp_sendstr(request, text);
}

/* A connection has a context of its own, freed with it. */
static void test_session_context(void) {
    httpd_config_t config = config_of();
    start(&config);
    add("/count", HTTP_GET, count);
    int first = client(), second = client();
    say(first, "GET /count HTTP/1.1\r\n\r\n");
    expect(first, "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\r\n00001");
    say(first, "GET /count HTTP/1.1\r\n\r\n");
    expect(first, "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\r\n00002");
    say(second, "GET /count HTTP/1.1\r\n\r\n");
    expect(second, "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\r\n00001");
    CHECK_EQUAL(s_freed, 0);
    close(first);
    CHECK_SOON(s_freed == 1);
    stop();
    CHECK_EQUAL(s_freed, 2);
    close(second);
}

/* Full, the server lets others wait, or closes the connection that was not used for longest. */
static void test_least_recently_used(void) {
    httpd_config_t config = config_of();
    config.lru_purge_enable = true;
    start(&config);
    add("/hello", HTTP_GET, hello);
    int fds[3];
    for (int i = 0; i < 3; i++) {
        fds[i] = client();
        say(fds[i], "GET /hello HTTP/1.1\r\n\r\n");
        expect(fds[i], HELLO);
    }
    say(fds[0], "GET /hello HTTP/1.1\r\n\r\n");
    expect(fds[0], HELLO);
    ask("GET /hello HTTP/1.1\r\n\r\n", HELLO, false);
    expect_end(fds[1]);
    close(fds[0]);
    close(fds[2]);
    stop();
}

static void work(void *argument) {
    CHECK(argument == &s_works);
    CHECK(strcmp(pcTaskGetName(NULL), "httpd") == 0);
    s_works = s_works + 1;
}

static httpd_req_t *s_async;

static esp_err_t later(httpd_req_t *request) {
    return httpd_req_async_handler_begin(request, &s_async);
}

/* Others can have work done in the server's task, and answer a request from their own. */
static void test_work_and_async(void) {
    httpd_config_t config = config_of();
    start(&config);
    add("/later", HTTP_GET, later);
    CHECK_EQUAL(httpd_queue_work(s_server, work, (void *)(uintptr_t)&s_works), ESP_OK);
    CHECK_SOON(s_works == 1);
    int fd = client();
    char value[8];
    say(fd, "GET /later HTTP/1.1\r\nX-A: b\r\n\r\n");
    CHECK_SOON(s_async != NULL);
    CHECK_EQUAL(httpd_req_get_hdr_value_str(s_async, "X-A", value, sizeof value), ESP_OK);
    CHECK_EQUAL(httpd_resp_sendstr(s_async, "hello"), ESP_OK);
    expect(fd, HELLO);
    httpd_req_t *first = s_async;
    s_async = NULL;
    CHECK_EQUAL(httpd_req_async_handler_complete(first), ESP_OK);
    say(fd, "GET /later HTTP/1.1\r\n\r\n"); /* the connection is served again */
    CHECK_SOON(s_async != NULL);
    size_t count = 1;
    int client_fd = -1;
    CHECK_EQUAL(httpd_get_client_list(s_server, &count, &client_fd), ESP_OK);
    CHECK(count == 1 && client_fd == httpd_req_to_sockfd(s_async));
    CHECK_EQUAL(httpd_req_async_handler_complete(s_async), ESP_OK);
    CHECK_EQUAL(httpd_sess_trigger_close(s_server, client_fd), ESP_OK);
    expect_end(fd);
    stop();
}

/* Templates of the wildcard matcher. */
static void test_wildcards(void) {
    static const struct {
        const char *template;
        const char *uri;
        bool matches;
    } cases[] = {
        {"/a/*", "/a/", true},  {"/a/*", "/a/b/c", true}, {"/a/*", "/a", false},   {"/a", "/a", true},
        {"/a", "/ab", false},   {"/ab?", "/a", true},     {"/ab?", "/ab", true},   {"/ab?", "/abc", false},
        {"/ab?", "/ac", false}, {"/a/?*", "/a", true},    {"/a/?*", "/a/x", true}, {"/a/?*", "/ax", false},
        {"*", "/", true},       {"?", "/", false},        {"", "", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CHECK_EQUAL(httpd_uri_match_wildcard(cases[i].template, cases[i].uri, strlen(cases[i].uri)),
                    cases[i].matches);
    }
}

/* What cannot be served is refused: more sockets than there are, a port or a control port that is taken. */
static void test_refusals(void) {
    httpd_config_t config = config_of();
    httpd_handle_t other = NULL;
    config.max_open_sockets = CONFIG_LWIP_MAX_SOCKETS - 2;
    CHECK_EQUAL(httpd_start(&other, &config), ESP_ERR_INVALID_ARG);
    config.max_open_sockets = 2;
    start(&config);
    config.server_port = unused_port(SOCK_STREAM);
    CHECK_EQUAL(httpd_start(&other, &config), ESP_FAIL); /* the control port */
    config.ctrl_port = unused_port(SOCK_DGRAM);
    CHECK_EQUAL(httpd_start(&other, &config), ESP_OK);
    CHECK_EQUAL(httpd_stop(other), ESP_OK);
    stop();
    CHECK_EQUAL(httpd_stop(NULL), ESP_ERR_INVALID_ARG);
}

static void on_event(void *seen, esp_event_base_t base, int32_t id, void *data) {
    (void)data;
    CHECK(base == ESP_HTTP_SERVER_EVENT);
    char *end = seen;
    end[strlen(end)] = (char)('0' + id);
}

/* The default event loop tells of a request's life. */
static void test_events(void) {
    static char seen[32];
    CHECK_EQUAL(esp_event_handler_register(ESP_HTTP_SERVER_EVENT, ESP_EVENT_ANY_ID, on_event, seen), ESP_OK);
    httpd_config_t config = config_of();
    start(&config);
    add("/hello", HTTP_GET, hello);
    ask("GET /hello HTTP/1.1\r\n\r\n", HELLO, false);
    CHECK_SOON(strchr(seen, '7') != NULL);
    stop();
    CHECK_SOON(strchr(seen, '8') != NULL);
    CHECK(strcmp(seen, "1234678") == 0); /* start connected header sent data disconnected stop */
    CHECK_EQUAL(esp_event_handler_unregister(ESP_HTTP_SERVER_EVENT, ESP_EVENT_ANY_ID, on_event), ESP_OK);
}

/* Base 64 and SHA-1 as components have them: RFC 4648's and FIPS 180's own examples. */
static void test_crypto(void) {
    unsigned char text[16], digest[20];
    size_t length = 0;
    CHECK_EQUAL(esp_crypto_base64_encode(NULL, 0, &length, (const unsigned char *)"foob", 4), -0x2A);
    CHECK_EQUAL(length, 9);
    CHECK_EQUAL(esp_crypto_base64_encode(text, sizeof text, &length, (const unsigned char *)"foob", 4), 0);
    CHECK(length == 8 && strcmp((const char *)text, "Zm9vYg==") == 0);
    CHECK_EQUAL(esp_crypto_sha1((const unsigned char *)"abc", 3, digest), 0);
    CHECK(memcmp(digest, "\xa9\x99\x3e\x36\x47\x06\x81\x6a", 8) == 0);
}

void app_main(void) {
    CHECK_EQUAL(esp_event_loop_create_default(), ESP_OK);
    test_uris();
    test_query_and_headers();
    test_bodies();
    test_bad_requests();
    test_errors();
    test_session_context();
    test_least_recently_used();
    test_work_and_async();
    test_wildcards();
    test_refusals();
    test_events();
    test_crypto();
    _exit(0);
}
