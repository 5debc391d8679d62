/* SPDX-License-Identifier: Apache-2.0 */
/* Authorization after a 401, with the options that a product sets for it (CMakeLists.txt sets them here). */
#include "esp_http_client.h"
#include "http_peer.h"

#define OK_ANSWER "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
#define ASKING(challenge) "HTTP/1.1 401 No\r\nWWW-Authenticate: " challenge "\r\nContent-Length: 0\r\n\r\n"

static esp_http_client_handle_t client_of(const char *path, const char *username) {
    const esp_http_client_config_t config = {
        .url = url(path), .username = username, .password = "Circle of Life", .max_authorization_retries = 1};
    esp_http_client_handle_t client = esp_http_client_init(&config);
    CHECK(client != NULL);
    return client;
}

/* Asked for, the credentials go with a second request on the same connection. */
static void test_basic(void) {
    const turn_t turns[] = {{ASKING("Basic realm=\"x\""), false}, {OK_ANSWER, false}};
    PEER_START(turns);
    esp_http_client_handle_t client = client_of("/", "Mufasa");
    CHECK_EQUAL(esp_http_client_perform(client), ESP_OK);
    CHECK_EQUAL(esp_http_client_get_status_code(client), 200);
    CHECK_EQUAL(s_connections, 1);
    CHECK(strstr(s_asked, "Authorization") > strstr(s_asked, "\r\n\r\n"));
    CHECK(strstr(s_last, "\r\nAuthorization: Basic TXVmYXNhOkNpcmNsZSBvZiBMaWZl\r\n") != NULL);
    esp_http_client_cleanup(client);
}

static void field(char *value, size_t size, const char *name) {
    const char *found = strstr(s_last, text("%s=\"", name));
    CHECK(found != NULL);
    found += strlen(name) + 2;
    snprintf(value, size, "%.*s", (int)strcspn(found, "\""), found);
}

/* The answer to a challenge, by the words of RFC 7616 and not by the client's own code. */
static void test_digest(const char *challenge, const char *algorithm, const char *program) {
    turn_t turns[] = {{challenge, false}, {OK_ANSWER, false}};
    char cnonce[64], response[80], command[512], expected[80] = "";
    PEER_START(turns);
    esp_http_client_handle_t client = client_of("/dir/index.html?a", "Mufasa");
    CHECK_EQUAL(esp_http_client_perform(client), ESP_OK);
    CHECK(strstr(s_last, text(", algorithm=%s, ", algorithm)) != NULL);
    CHECK(strstr(s_last, "realm=\"http-auth@example.org\", nonce=\"7ypf/xlj\", uri=\"/dir/index.html?a\"") !=
          NULL);
    CHECK(strstr(s_last, ", qop=auth, nc=00000001, ") != NULL);
    CHECK(strstr(s_last, ", opaque=\"FQhe/qaU\"\r\n") != NULL);
    field(cnonce, sizeof cnonce, "cnonce");
    field(response, sizeof response, "response");
    snprintf(
        command, sizeof command,
        "h() { printf %%s \"$1\" | %s | cut -d ' ' -f 1; }; a=$(h 'Mufasa:http-auth@example.org:Circle of "
        "Life'); b=$(h GET:/dir/index.html?a); h \"$a:7ypf/xlj:00000001:%s:auth:$b\"",
        program, cnonce);
    FILE *pipe = popen(command, "r");
    CHECK(pipe != NULL && fscanf(pipe, "%79s", expected) == 1);
    pclose(pipe);
    CHECK_TEXT(response, expected);
    esp_http_client_cleanup(client);
}

/* Refused again, with a scheme that is unknown, and without a challenge the request fails. */
static void test_refused(void) {
    const turn_t turns[] = {{ASKING("Basic realm=\"x\""), false}, {ASKING("Basic realm=\"x\""), false}};
    PEER_START(turns);
    esp_http_client_handle_t client = client_of("/", "Mufasa");
    CHECK_EQUAL(esp_http_client_perform(client), ESP_FAIL);
    esp_http_client_cleanup(client);
    const turn_t unknown[] = {{ASKING("Bearer realm=\"x\""), false}};
    PEER_START(unknown);
    client = client_of("/", "Mufasa");
    CHECK_EQUAL(esp_http_client_perform(client), ESP_ERR_NOT_SUPPORTED);
    CHECK_EQUAL(esp_http_client_get_status_code(client), 401);
    esp_http_client_cleanup(client);
    const turn_t mute[] = {{"HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n", false}};
    PEER_START(mute);
    client = client_of("/", "Mufasa");
    CHECK_EQUAL(esp_http_client_perform(client), ESP_ERR_NOT_SUPPORTED);
    esp_http_client_cleanup(client);
}

void app_main(void) {
    test_basic();
    test_digest(ASKING("Digest realm=\"http-auth@example.org\", qop=\"auth\", algorithm=MD5, "
                       "nonce=\"7ypf/xlj\", opaque=\"FQhe/qaU\""),
                "MD5", "md5sum");
    test_digest(ASKING("Digest realm=\"http-auth@example.org\", qop=\"auth\", nonce=\"7ypf/xlj\", "
                       "opaque=\"FQhe/qaU\", algorithm=SHA-256"),
                "SHA-256", "sha256sum");
    test_refused();
    _exit(0);
}
