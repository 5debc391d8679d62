/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP client: what it asks, what it makes of an answer, which events come with it and in what order. */
#include "esp_event.h"
#include "esp_http_client.h"
#include "esp_tls_errors.h"
#include "http_peer.h"

#define SHORT_MS 60

static char s_seen[4096];

static void note(const char *what) {
    size_t used = strlen(s_seen);
    snprintf(s_seen + used, sizeof s_seen - used, "%s ", what);
}

static esp_err_t on_event(esp_http_client_event_t *event) {
    static const char *const names[] = {"error", "connected", "sent",         "header",
                                        "data",  "finish",    "disconnected", "redirect"};
    CHECK(event->client != NULL);
    CHECK(event->user_data == s_seen);
    if (event->event_id == HTTP_EVENT_ON_HEADER) {
        note(text("%s=%s", event->header_key, event->header_value));
    } else if (event->event_id == HTTP_EVENT_ON_DATA) {
        note(text("data:%.*s", event->data_len, (const char *)event->data));
    } else {
        note(names[event->event_id]);
    }
    return ESP_OK;
}

static esp_http_client_handle_t client_of(esp_http_client_config_t config) {
    config.event_handler = on_event;
    config.user_data = s_seen;
    s_seen[0] = '\0';
    esp_http_client_handle_t client = esp_http_client_init(&config);
    CHECK(client != NULL);
    return client;
}

static void expect_seen(const char *wanted) {
    CHECK_TEXT(s_seen, wanted);
    s_seen[0] = '\0';
}

/* A request is a line and two headers; events come in the order in which things happen. */
static void test_get(void) {
    const turn_t turns[] = {
        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Kind: a\r\nConnection: close\r\n\r\nhello", true}};
    PEER_START(turns);
    esp_http_client_handle_t client = client_of((esp_http_client_config_t){.url = url("/a?b=c")});
    const char *wanted = text("GET /a?b=c HTTP/1.1\r\nUser-Agent: ESP32 HTTP Client/1.0\r\n"
                              "Host: 127.0.0.1:%d\r\n\r\n",
                              peer_port());
    CHECK_EQUAL(esp_http_client_perform(client), ESP_OK);
    CHECK_TEXT(s_asked, wanted);
    expect_seen("connected sent Content-Length=5 X-Kind=a Connection=close data:hello finish disconnected ");
    CHECK_EQUAL(esp_http_client_get_status_code(client), 200);
    CHECK_EQUAL(esp_http_client_get_content_length(client), 5);
    CHECK(esp_http_client_is_complete_data_received(client));
    CHECK_EQUAL(esp_http_client_cleanup(client), ESP_OK);
    expect_seen("");
}

/* A connection that the server keeps is used again; another request is on it, with what was set meanwhile. */
static void test_keep_alive_and_post(void) {
    const turn_t turns[] = {{"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n", false},
                            {"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok", false}};
    PEER_START(turns);
    esp_http_client_handle_t client = client_of((esp_http_client_config_t){.url = url("/1")});
    CHECK_EQUAL(esp_http_client_perform(client), ESP_OK);
    expect_seen("connected sent Content-Length=0 finish ");
    CHECK(esp_http_client_is_persistent_connection(client));
    CHECK_EQUAL(esp_http_client_set_url(client, url("/2")), ESP_OK);
    CHECK_EQUAL(esp_http_client_set_method(client, HTTP_METHOD_POST), ESP_OK);
    CHECK_EQUAL(esp_http_client_set_header(client, " X-Tag ", " a b "), ESP_OK);
    CHECK_EQUAL(esp_http_client_set_post_field(client, "k=v", 3), ESP_OK);
    CHECK_EQUAL(esp_http_client_perform(client), ESP_OK);
    expect_seen("sent Content-Length=2 data:ok finish ");
    CHECK_EQUAL(s_connections, 1);
    CHECK(strstr(s_last, "POST /2 HTTP/1.1\r\nUser-Agent: ") == s_last);
    CHECK(strstr(s_last, "\r\nX-Tag: a b\r\nContent-Type: application/x-www-form-urlencoded\r\n"
                         "Content-Length: 3\r\n\r\nk=v") != NULL);
    char *value = "not touched";
    CHECK_EQUAL(esp_http_client_get_header(client, "x-tag", &value), ESP_OK);
    CHECK_TEXT(value, "a b");
    CHECK_EQUAL(esp_http_client_delete_header(client, "X-None"), ESP_ERR_NOT_FOUND);
    CHECK_EQUAL(esp_http_client_cleanup(client), ESP_OK);
    expect_seen("disconnected ");
}

/* Chunks reach the handler decoded; there is no length then. */
static void test_chunks(void) {
    const turn_t turns[] = {{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                             "3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\n\r\n",
                             false}};
    PEER_START(turns);
    esp_http_client_handle_t client = client_of((esp_http_client_config_t){.url = url("/")});
    int length = 0;
    CHECK_EQUAL(esp_http_client_perform(client), ESP_OK);
    expect_seen("connected sent Transfer-Encoding=chunked data:abc data:defg finish ");
    CHECK(esp_http_client_is_chunked_response(client));
    CHECK_EQUAL(esp_http_client_get_content_length(client), -1);
    CHECK_EQUAL(esp_http_client_get_chunk_length(client, &length), ESP_OK);
    CHECK_EQUAL(length, 0);
    esp_http_client_cleanup(client);
}

/* A redirect is followed, on the connection where the host is the same; its body goes to the handler too. */
static void test_redirect(void) {
    const turn_t turns[] = {
        {"HTTP/1.1 302 Found\r\nLocation: /there?x\r\nContent-Length: 2\r\n\r\nno", false},
        {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nyes", false}};
    PEER_START(turns);
    esp_http_client_handle_t client = client_of((esp_http_client_config_t){.url = url("/here")});
    CHECK_EQUAL(esp_http_client_perform(client), ESP_OK);
    expect_seen("connected sent Location=/there?x Content-Length=2 data:no finish "
                "sent Content-Length=3 data:yes finish ");
    CHECK(strstr(s_asked, "GET /there?x HTTP/1.1\r\n") != NULL);
    CHECK_EQUAL(s_connections, 1);
    esp_http_client_cleanup(client);
}

/* Another host, here another address of it, is another connection; its Host has no port, as on a chip. */
static void test_redirect_elsewhere(void) {
    static turn_t turns[2] = {{NULL, true}, {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", false}};
    PEER_START(turns);
    turns[0].answer = text("HTTP/1.1 307 Temporary Redirect\r\nLocation: http://127.0.0.2:%d/\r\n"
                           "Content-Length: 0\r\n\r\n",
                           peer_port());
    esp_http_client_handle_t client = client_of((esp_http_client_config_t){.url = url("/")});
    CHECK_EQUAL(esp_http_client_perform(client), ESP_OK);
    CHECK(strstr(s_seen, "connected sent Location") == s_seen);
    CHECK(strstr(s_seen, "disconnected finish connected sent Content-Length=0 finish ") != NULL);
    CHECK_EQUAL(s_connections, 2);
    CHECK(strstr(s_asked, "\r\nHost: 127.0.0.2\r\n") != NULL);
    esp_http_client_cleanup(client);
}

/* Redirects end after the number that is allowed. */
static void test_too_many_redirects(void) {
    const turn_t again = {"HTTP/1.1 301 Moved\r\nLocation: /\r\nContent-Length: 0\r\n\r\n", false};
    const turn_t turns[] = {again, again, again};
    PEER_START(turns);
    esp_http_client_handle_t client =
        client_of((esp_http_client_config_t){.url = url("/"), .max_redirection_count = 2});
    CHECK_EQUAL(esp_http_client_perform(client), ESP_ERR_HTTP_MAX_REDIRECT);
    CHECK(strstr(s_seen, "error ") != NULL);
    CHECK_EQUAL(s_turns_left, 0);
    esp_http_client_cleanup(client);
}

static esp_err_t follow_by_hand(esp_http_client_event_t *event) {
    if (event->event_id == HTTP_EVENT_REDIRECT) {
        note("redirect");
        return esp_http_client_set_redirection(event->client);
    }
    return ESP_OK;
}

/* With disable_auto_redirect the handler is asked, and may follow. */
static void test_redirect_by_hand(void) {
    const turn_t turns[] = {{"HTTP/1.1 308 Moved\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n", false},
                            {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", false}};
    PEER_START(turns);
    s_seen[0] = '\0';
    const esp_http_client_config_t config = {
        .url = url("/a"), .disable_auto_redirect = true, .event_handler = follow_by_hand};
    esp_http_client_handle_t client = esp_http_client_init(&config);
    CHECK_EQUAL(esp_http_client_perform(client), ESP_OK);
    expect_seen("redirect ");
    CHECK_EQUAL(esp_http_client_get_status_code(client), 200);
    esp_http_client_cleanup(client);
}

/* In steps: what came with the headers is read first, in pieces of any size, and the end is 0. */
static void test_steps(void) {
    const turn_t turns[] = {{"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789", false}};
    PEER_START(turns);
    esp_http_client_handle_t client =
        client_of((esp_http_client_config_t){.url = url("/"), .method = HTTP_METHOD_PUT});
    char buffer[16] = "";
    CHECK_EQUAL(esp_http_client_write(client, "x", 1), ESP_FAIL);
    CHECK_EQUAL(esp_http_client_fetch_headers(client), ESP_FAIL);
    CHECK_EQUAL(esp_http_client_open(client, 4), ESP_OK);
    CHECK_EQUAL(esp_http_client_write(client, "body", 4), 4);
    CHECK_EQUAL(esp_http_client_fetch_headers(client), 10);
    CHECK_EQUAL(esp_http_client_read(client, buffer, 3), 3);
    CHECK(memcmp(buffer, "012", 3) == 0);
    CHECK_EQUAL(esp_http_client_read(client, buffer, 4), 4);
    CHECK(memcmp(buffer, "3456", 4) == 0);
    CHECK_EQUAL(esp_http_client_read_response(client, buffer, sizeof buffer), 3);
    CHECK(memcmp(buffer, "789", 3) == 0);
    CHECK_EQUAL(esp_http_client_read(client, buffer, sizeof buffer), 0);
    CHECK(strstr(s_asked, "PUT / HTTP/1.1\r\n") != NULL && strstr(s_asked, "\r\n\r\nbody") != NULL);
    expect_seen("connected sent Content-Length=10 data:0123456789 ");
    CHECK_EQUAL(esp_http_client_close(client), ESP_OK);
    expect_seen("disconnected ");
    CHECK_EQUAL(esp_http_client_close(client), ESP_OK);
    expect_seen("");
    esp_http_client_cleanup(client);
}

/* A body of unknown length is sent in chunks that the caller forms, and read until the connection's end. */
static void test_steps_without_length(void) {
    const turn_t turns[] = {{"HTTP/1.0 200 OK\r\n\r\nuntil the end", true}};
    PEER_START(turns);
    esp_http_client_handle_t client =
        client_of((esp_http_client_config_t){.url = url("/"), .method = HTTP_METHOD_POST});
    char buffer[32];
    CHECK_EQUAL(esp_http_client_open(client, -1), ESP_OK);
    CHECK_EQUAL(esp_http_client_write(client, "2\r\nab\r\n0\r\n\r\n", 12), 12);
    CHECK_EQUAL(esp_http_client_fetch_headers(client), 0);
    CHECK(strstr(s_asked, "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n") != NULL);
    CHECK(strstr(s_asked, "Content-Length") == NULL);
    CHECK(esp_http_client_is_chunked_response(client));
    CHECK_EQUAL(esp_http_client_read_response(client, buffer, sizeof buffer), 13);
    CHECK(memcmp(buffer, "until the end", 13) == 0);
    CHECK(esp_http_client_is_complete_data_received(client));
    esp_http_client_cleanup(client);
}

/* A body larger than the buffer is read in whole, past the buffer's size. */
static void test_large_body(void) {
    static char answer[8192];
    int head = snprintf(answer, sizeof answer, "HTTP/1.1 200 OK\r\nContent-Length: 6000\r\n\r\n");
    for (int i = 0; i < 6000; i++) {
        answer[head + i] = (char)('a' + i % 23);
    }
    const turn_t turns[] = {{answer, false}, {answer, false}};
    PEER_START(turns);
    esp_http_client_handle_t client =
        client_of((esp_http_client_config_t){.url = url("/"), .buffer_size = 256});
    static char buffer[6001];
    int flushed = 0;
    CHECK_EQUAL(esp_http_client_open(client, 0), ESP_OK);
    CHECK_EQUAL(esp_http_client_fetch_headers(client), 6000);
    CHECK_EQUAL(esp_http_client_read(client, buffer, sizeof buffer), 6000);
    CHECK(memcmp(buffer, answer + head, 6000) == 0);
    CHECK_EQUAL(esp_http_client_open(client, 0), ESP_OK);
    CHECK_EQUAL(esp_http_client_fetch_headers(client), 6000);
    CHECK_EQUAL(esp_http_client_flush_response(client, &flushed), ESP_OK);
    CHECK_EQUAL(flushed + 256 - head, 6000); /* what came with the headers is not counted */
    CHECK_EQUAL(s_connections, 1);
    esp_http_client_cleanup(client);
}

/* Who does not answer in time is ESP_ERR_HTTP_EAGAIN, and may be waited for again. */
static void test_time_out(void) {
    const turn_t turns[] = {{NULL, false}, {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", false}};
    PEER_START(turns);
    esp_http_client_handle_t client =
        client_of((esp_http_client_config_t){.url = url("/"), .timeout_ms = SHORT_MS});
    char buffer[16];
    CHECK_EQUAL(esp_http_client_perform(client), ESP_ERR_HTTP_EAGAIN);
    expect_seen("connected sent ");
    CHECK_EQUAL(esp_http_client_fetch_headers(client), -ESP_ERR_HTTP_EAGAIN);
    esp_http_client_cleanup(client); /* as on a chip it would lose what comes with the next headers */
    client = client_of((esp_http_client_config_t){.url = url("/")});
    CHECK_EQUAL(esp_http_client_open(client, 0), ESP_OK);
    esp_http_client_set_timeout_ms(client, 5000);
    CHECK_EQUAL(esp_http_client_fetch_headers(client), 9);
    esp_http_client_set_timeout_ms(client, SHORT_MS);
    CHECK_EQUAL(esp_http_client_read(client, buffer, sizeof buffer), 3);
    CHECK_EQUAL(esp_http_client_read(client, buffer, sizeof buffer), -ESP_ERR_HTTP_EAGAIN);
    CHECK(!esp_http_client_is_complete_data_received(client));
    esp_http_client_cleanup(client);
}

/* Nobody there: the handler is told, then the caller. */
static void test_refused(void) {
    int unused = tcp();
    bind_loopback(unused);
    const int port = ntohs(address_of(unused).sin_port);
    esp_http_client_handle_t client =
        client_of((esp_http_client_config_t){.host = "127.0.0.1", .path = "/", .port = port});
    int tls_code = -1, flags = -1;
    CHECK_EQUAL(esp_http_client_perform(client), ESP_ERR_HTTP_CONNECT);
    expect_seen("error ");
    CHECK_EQUAL(esp_http_client_get_errno(client), ECONNREFUSED);
    CHECK_EQUAL(esp_http_client_get_and_clear_last_tls_error(client, &tls_code, &flags),
                ESP_ERR_ESP_TLS_FAILED_CONNECT_TO_HOST);
    CHECK_EQUAL(esp_http_client_open(client, 0), ESP_ERR_HTTP_CONNECT);
    esp_http_client_cleanup(client);
    close(unused);
}

/* A body that is cut short is an error, one without a length too for perform(); so is no answer at all. */
static void test_cut_short(void) {
    const turn_t turns[] = {{"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", true},
                            {"HTTP/1.0 200 OK\r\n\r\nabc", true},
                            {"HTTP/1.1 200", true}};
    PEER_START(turns);
    esp_http_client_handle_t client = client_of((esp_http_client_config_t){.url = url("/")});
    CHECK_EQUAL(esp_http_client_perform(client), ESP_ERR_HTTP_INCOMPLETE_DATA);
    expect_seen("connected sent Content-Length=9 data:abc error ");
    esp_http_client_close(client);
    CHECK_EQUAL(esp_http_client_perform(client), ESP_ERR_HTTP_INCOMPLETE_DATA);
    expect_seen("disconnected connected sent data:abc error disconnected ");
    CHECK_EQUAL(esp_http_client_perform(client), ESP_ERR_HTTP_FETCH_HEADER);
    CHECK_EQUAL(esp_http_client_get_and_clear_last_tls_error(client, NULL, NULL),
                ESP_ERR_ESP_TLS_TCP_CLOSED_FIN);
    esp_http_client_cleanup(client);
}

/* HEAD has a length and no body. */
static void test_head(void) {
    const turn_t turns[] = {{"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", false}};
    PEER_START(turns);
    esp_http_client_handle_t client =
        client_of((esp_http_client_config_t){.url = url("/"), .method = HTTP_METHOD_HEAD});
    CHECK_EQUAL(esp_http_client_perform(client), ESP_OK);
    CHECK_EQUAL(esp_http_client_get_content_length(client), 1000);
    expect_seen("connected sent Content-Length=1000 finish ");
    esp_http_client_cleanup(client);
}

/* Headers go in as many pieces as the buffer asks for; one that is larger than the buffer ends them. */
static void test_small_buffer(void) {
    const turn_t turns[] = {{"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", false}};
    PEER_START(turns);
    esp_http_client_handle_t client =
        client_of((esp_http_client_config_t){.url = url("/"), .buffer_size_tx = 80, .timeout_ms = SHORT_MS});
    for (int i = 0; i < 9; i++) {
        esp_http_client_set_header(client, text("X-%d", i), "0123456789012345678901234567890123456789");
    }
    CHECK_EQUAL(esp_http_client_perform(client), ESP_OK);
    for (int i = 0; i < 9; i++) {
        CHECK(strstr(s_asked, text("\r\nX-%d: 0123456789012345678901234567890123456789\r\n", i)) != NULL);
    }
    esp_http_client_set_header(client, "Y", text("%0100d", 1));
    CHECK_EQUAL(esp_http_client_perform(client), ESP_ERR_HTTP_EAGAIN);
    CHECK(strstr(s_asked, "Y: ") == NULL);
    esp_http_client_cleanup(client);
}

/* Credentials of the URL are sent at once where the type is known, else after a 401 that asks for them. */
static void test_basic_from_url(void) {
    const turn_t turns[] = {{"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", false}};
    PEER_START(turns);
    esp_http_client_handle_t client = client_of(
        (esp_http_client_config_t){.url = text("http://Aladdin:open%%20sesame@127.0.0.1:%d/", peer_port()),
                                   .auth_type = HTTP_AUTH_TYPE_BASIC});
    esp_http_client_set_password(client, "open sesame");
    CHECK_EQUAL(esp_http_client_perform(client), ESP_OK);
    CHECK(strstr(s_asked, "\r\nAuthorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n") !=
          NULL); /* RFC 7617 */
    esp_http_client_cleanup(client);
}

/* A configuration that leads nowhere is no client. */
static void test_refusals(void) {
    const esp_http_client_config_t bad[] = {
        {.host = "127.0.0.1"},
        {.url = "http://"},
        {.url = "no url"},
        {.url = "/path/only"},
        {.url = "https://127.0.0.1/", .cert_der = "\x30\x82\x01\x01", .cert_len = 4},
        {.url = "https://127.0.0.1/", .tls_version = ESP_HTTP_CLIENT_TLS_VER_TLS_1_3},
        {.url = "http://127.0.0.1/", .addr_type = (esp_http_client_addr_type_t)77},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK(esp_http_client_init(&bad[i]) == NULL);
    }
    CHECK_EQUAL(esp_http_client_cleanup(NULL), ESP_FAIL);
    esp_http_client_handle_t client = client_of((esp_http_client_config_t){.url = "ftp://127.0.0.1/"});
    CHECK_EQUAL(esp_http_client_perform(client), ESP_ERR_HTTP_INVALID_TRANSPORT);
    CHECK_EQUAL(esp_http_client_get_transport_type(client), HTTP_TRANSPORT_UNKNOWN);
    CHECK_EQUAL(esp_http_client_set_url(client, "https://[::1]:44/x?y#z"), ESP_OK);
    char whole[64];
    CHECK_EQUAL(esp_http_client_get_url(client, whole, sizeof whole), ESP_OK);
    CHECK_TEXT(whole, "https://::1:44/x");
    CHECK_EQUAL(esp_http_client_get_transport_type(client), HTTP_TRANSPORT_OVER_SSL);
    esp_http_client_cleanup(client);
}

static void on_loop_event(void *seen, esp_event_base_t base, int32_t id, void *data) {
    CHECK(base == ESP_HTTP_CLIENT_EVENT && data != NULL);
    char *end = seen;
    end[strlen(end)] = (char)('0' + id);
}

/* The default event loop has each event too. */
static void test_event_loop(void) {
    static char seen[32];
    const turn_t turns[] = {{"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", false}};
    PEER_START(turns);
    CHECK_EQUAL(esp_event_loop_create_default(), ESP_OK);
    CHECK_EQUAL(esp_event_handler_register(ESP_HTTP_CLIENT_EVENT, ESP_EVENT_ANY_ID, on_loop_event, seen),
                ESP_OK);
    esp_http_client_handle_t client = client_of((esp_http_client_config_t){.url = url("/")});
    CHECK_EQUAL(esp_http_client_perform(client), ESP_OK);
    esp_http_client_cleanup(client);
    CHECK_SOON(strlen(seen) == 6);
    CHECK_TEXT(seen, "123456"); /* connected sent header data finish disconnected */
    CHECK_EQUAL(esp_event_loop_delete_default(), ESP_OK);
}

void app_main(void) {
    test_get();
    test_keep_alive_and_post();
    test_chunks();
    test_redirect();
    test_redirect_elsewhere();
    test_too_many_redirects();
    test_redirect_by_hand();
    test_steps();
    test_steps_without_length();
    test_large_body();
    test_time_out();
    test_refused();
    test_cut_short();
    test_head();
    test_small_buffer();
    test_basic_from_url();
    test_refusals();
    test_event_loop();
    _exit(0);
}
