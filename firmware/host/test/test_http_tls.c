/* SPDX-License-Identifier: Apache-2.0 */
/* http_link/tls.c: which session was offered, and what a handshake keeps others from. TLS itself is played.
 */
#include "idf_check.h"

#include "private.h"

enum { OLD = 1, NEW = 2 };

static http_link_t s_link;
static int s_agreed;         /* the master secret that a handshake ends with */
static int s_kept_meanwhile; /* another handshake has ended meanwhile, with this one; 0: none has */
static bool s_offered;

static esp_tls_client_session_t *session_of(int master) {
    esp_tls_client_session_t *session = calloc(1, sizeof(*session));
    CHECK(session != NULL);
    memset(session->saved_session.MBEDTLS_PRIVATE(master), master,
           sizeof(session->saved_session.MBEDTLS_PRIVATE(master)));
    return session;
}

static void keep(int master) {
    free(s_link.session);
    s_link.session = session_of(master);
}

/* Linked with --wrap. */
int __wrap_esp_tls_conn_new_async(const char *host, int length, int port, const esp_tls_cfg_t *config,
                                  esp_tls_t *tls) {
    (void)host, (void)length, (void)port, (void)tls;
    s_offered = config->client_session != NULL;
    CHECK(xSemaphoreTake(s_link.lock, 0)); /* the idle connections are everybody's meanwhile */
    xSemaphoreGive(s_link.lock);
    CHECK(!xSemaphoreTake(s_link.session_lock, 0));
    return 1;
}

esp_tls_client_session_t *__wrap_esp_tls_get_client_session(esp_tls_t *tls) {
    (void)tls;
    if (s_kept_meanwhile != 0) {
        keep(s_kept_meanwhile);
    }
    return session_of(s_agreed);
}

void __wrap_esp_tls_free_client_session(esp_tls_client_session_t *session) {
    free(session);
}

static bool shake_hands(int agreed, int kept_meanwhile) {
    http_result_t result = {0};
    http_call_t call = {.link = &s_link, .deadline_us = INT64_MAX, .result = &result};
    http_connection_t connection = {.tls = esp_tls_init(), .fd = -1};
    s_agreed = agreed;
    s_kept_meanwhile = kept_meanwhile;
    CHECK_EQUAL(http_tls_start(&s_link, &call, &connection), HTTP_OUTCOME_OK);
    esp_tls_conn_destroy(connection.tls);
    return result.resumed;
}

static void the_first_handshake_is_a_full_one(void) {
    CHECK(!shake_hands(OLD, 0) && !s_offered);
    CHECK(shake_hands(OLD, 0) && s_offered);
    CHECK(!shake_hands(NEW, 0) && s_offered);
}

/* What counts is the session that was offered, whatever is kept by the time the handshake ends. */
static void others_sessions_make_no_difference(void) {
    keep(OLD);
    CHECK(shake_hands(OLD, NEW));
    keep(OLD);
    CHECK(!shake_hands(NEW, NEW));
}

void app_main(void) {
    const http_link_config_t config = {.host = "h", .ca_pem = "", .resume = true, .sockets_max = 1};
    CHECK_EQUAL(http_link_create(&s_link, &config), ESP_OK);
    the_first_handshake_is_a_full_one();
    others_sessions_make_no_difference();
    http_link_delete(&s_link);
    exit(EXIT_SUCCESS);
}
