/* SPDX-License-Identifier: Apache-2.0 */
/* provision.c: a field takes effect whole and checked, or not at all, and leaves nothing behind. */
#include "provision.h"

#include "expect.h"
#include "port/port.h"
#include "wire.h"

static int64_t s_time_us;

esp_err_t port_set_time(int64_t utc_us) {
    s_time_us = utc_us;
    return ESP_OK;
}

static provision_status_t add(const char *field, int64_t offset, const char *text) {
    char base64[1400];
    size_t received = 0;
    wire_base64_encode((const uint8_t *)text, strlen(text), base64);
    return provision_add(field, offset, base64, &received);
}

static provision_status_t finish(const char *field, const char *text) {
    return provision_finish(field, (int64_t)strlen(text), wire_crc32(0, text, strlen(text)));
}

static void pieces_make_a_field(void) {
    EXPECT(add("psk", 0, "correct horse") == PROVISION_OK);
    EXPECT(provision()->psk[0] == '\0'); /* not before it was checked */
    EXPECT(add("psk", 13, " battery") == PROVISION_OK);
    EXPECT(finish("psk", "correct horse battery") == PROVISION_OK);
    EXPECT_TEXT(provision()->psk, "correct horse battery");
}

static void a_shorter_value_leaves_no_rest_of_the_longer(void) {
    EXPECT(add("psk", 0, "12345678") == PROVISION_OK && finish("psk", "12345678") == PROVISION_OK);
    for (size_t i = strlen(provision()->psk); i < sizeof(provision()->psk); i++) {
        EXPECT(provision()->psk[i] == '\0');
    }
    EXPECT(finish("psk", "") == PROVISION_OK); /* an empty field needs no piece */
    EXPECT_TEXT(provision()->psk, "");
}

static void a_bad_field_keeps_the_old_value(void) {
    EXPECT(add("ssid", 0, "lab") == PROVISION_OK && finish("ssid", "lab") == PROVISION_OK);
    EXPECT(add("ssid", 0, "xyz") == PROVISION_OK && finish("ssid", "xyZ") == PROVISION_BAD_CRC);
    EXPECT(finish("ssid", "xyz") == PROVISION_BAD_LENGTH); /* its pieces are gone */
    EXPECT(add("ssid", 0, "x") == PROVISION_OK && finish("ssid", "xy") == PROVISION_BAD_LENGTH);
    EXPECT_TEXT(provision()->ssid, "lab");
}

static void pieces_come_in_order_and_fit(void) {
    EXPECT(add("nonsense", 0, "x") == PROVISION_UNKNOWN_FIELD);
    EXPECT(add("ca_pem", 5, "x") == PROVISION_BAD_OFFSET);
    EXPECT(add("ca_pem", 0, "x") == PROVISION_OK && add("ca_pem", 2, "x") == PROVISION_BAD_OFFSET);
    EXPECT(add("psk", 1, "x") == PROVISION_BAD_OFFSET); /* the pieces so far are another field's */
    EXPECT(add("ssid", 0, "123456789012345678901234567890123") == PROVISION_TOO_LONG);
    EXPECT(add("ssid", 0, "12345678901234567890123456789012") == PROVISION_OK);
    size_t received = 0;
    EXPECT(provision_add("ssid", 0, "%%%%", &received) == PROVISION_BAD_BASE64);
}

static provision_status_t set(const char *field, const char *text) {
    provision_status_t status = add(field, 0, text);
    return status == PROVISION_OK ? finish(field, text) : status;
}

static void numbers_are_checked(void) {
    EXPECT(set("broker_tcp_port", "1883") == PROVISION_OK && provision()->broker_tcp_port == 1883);
    EXPECT(set("broker_tcp_port", "65536") == PROVISION_BAD_VALUE);
    EXPECT(set("broker_tcp_port", "-1") == PROVISION_BAD_VALUE);
    EXPECT(set("broker_tcp_port", "18x3") == PROVISION_BAD_VALUE);
    EXPECT(set("broker_tcp_port", "123456") == PROVISION_TOO_LONG);
    EXPECT(provision()->broker_tcp_port == 1883);
    EXPECT(set("utc_us", "1700000000000000") == PROVISION_OK && s_time_us == 1700000000000000);
    EXPECT(provision()->utc_us == s_time_us);
    EXPECT(set("utc_us", "9223372036854775808") == PROVISION_BAD_VALUE);
}

/* Where the host's side of a bench is; told again before each case, it replaces what was told before. */
static void a_peer_is_told_anew(void) {
    EXPECT(set("peer_host", "10.77.0.1") == PROVISION_OK && set("peer_port", "5001") == PROVISION_OK);
    EXPECT(set("peer_port", "8080") == PROVISION_OK && set("peer_tls_port", "8443") == PROVISION_OK);
    EXPECT(set("peer_name", "peer.hil.test") == PROVISION_OK && set("dns_host", "10.77.0.1") == PROVISION_OK);
    EXPECT_TEXT(provision()->peer_host, "10.77.0.1");
    EXPECT_TEXT(provision()->peer_name, "peer.hil.test");
    EXPECT_TEXT(provision()->dns_host, "10.77.0.1");
    EXPECT(provision()->peer_port == 8080 && provision()->peer_tls_port == 8443);
}

static void a_login_is_taken_and_fits(void) {
    char text[AGENT_WORD_SIZE + 1] = {0};
    memset(text, 'x', AGENT_WORD_SIZE);
    EXPECT(set("broker_password_port", "1884") == PROVISION_OK && provision()->broker_password_port == 1884);
    EXPECT(set("mqtt_username", "hil-board") == PROVISION_OK &&
           set("mqtt_password", "geheim") == PROVISION_OK);
    EXPECT(set("mqtt_password", text) == PROVISION_TOO_LONG);
    EXPECT_TEXT(provision()->mqtt_username, "hil-board");
    EXPECT_TEXT(provision()->mqtt_password, "geheim");
}

static void every_field_is_named(void) {
    char names[384]; /* as commands_provision.c has room for */
    provision_field_names(names, sizeof(names));
    EXPECT(strstr(names, "ca_pem,") == names && strstr(names, ",peer_tls_port") != NULL);
    EXPECT(strlen(names) < sizeof(names) - 1);
}

static void a_text_with_a_nul_is_refused(void) {
    size_t received = 0;
    EXPECT(provision_add("broker_host", 0, "YQBi", &received) == PROVISION_OK); /* a NUL b */
    EXPECT(provision_finish("broker_host", 3, wire_crc32(0, "a\0b", 3)) == PROVISION_BAD_VALUE);
}

/* A PEM field has the memory that it takes, the longest one fits, and an empty one is no pointer to nothing.
 */
static void a_certificate_is_kept_until_it_is_told_anew(void) {
    static char pem[AGENT_PEM_SIZE];
    memset(pem, 'p', sizeof(pem) - 1);
    EXPECT_TEXT(provision()->client_key_pem, "");
    for (size_t at = 0; at < sizeof(pem) - 1; at += 500) {
        char piece[501] = {0};
        memcpy(piece, pem + at, sizeof(pem) - 1 - at < 500 ? sizeof(pem) - 1 - at : 500);
        EXPECT(add("client_key_pem", (int64_t)at, piece) == PROVISION_OK);
    }
    EXPECT_TEXT(provision()->client_key_pem, ""); /* not before it was checked */
    EXPECT(finish("client_key_pem", pem) == PROVISION_OK);
    EXPECT_TEXT(provision()->client_key_pem, pem);
    EXPECT(set("client_key_pem", "short") == PROVISION_OK);
    EXPECT_TEXT(provision()->client_key_pem, "short");
    EXPECT(finish("client_key_pem", "") == PROVISION_OK);
    EXPECT_TEXT(provision()->client_key_pem, "");
}

int main(void) {
    a_certificate_is_kept_until_it_is_told_anew();
    pieces_make_a_field();
    a_shorter_value_leaves_no_rest_of_the_longer();
    a_bad_field_keeps_the_old_value();
    pieces_come_in_order_and_fit();
    numbers_are_checked();
    a_peer_is_told_anew();
    a_login_is_taken_and_fits();
    every_field_is_named();
    a_text_with_a_nul_is_refused();
    return 0;
}
