/* SPDX-License-Identifier: Apache-2.0 */
/* link/esp/station.c against a driver that the test plays: it knows one network, connects or refuses at once,
 * and allows each step of its initialisation once. */
#include "station.h"

#include "esp_log.h"
#include "esp_wifi.h"
#include "idf_check.h"

esp_event_base_t const WIFI_EVENT = "WIFI_EVENT";
esp_event_base_t const IP_EVENT = "IP_EVENT";

enum { REFUSED = 15, LEFT = 8 };

static esp_event_handler_t s_handler;
static wifi_config_t s_config;
static int s_interfaces, s_loops, s_drivers, s_handlers, s_sets, s_failing_drivers = 1;
static bool s_connected;
static bool s_connecting;
static int s_refusals, s_starts, s_stops;

static void tell_refused(uint8_t reason) {
    wifi_event_sta_disconnected_t event = {.reason = reason};
    s_connected = s_connecting = false;
    s_handler(NULL, WIFI_EVENT, WIFI_EVENT_STA_DISCONNECTED, &event);
}

esp_err_t esp_event_loop_create_default(void) {
    return ++s_loops == 1 ? ESP_OK : ESP_ERR_INVALID_STATE;
}

esp_err_t esp_event_handler_register(esp_event_base_t base, int32_t id, esp_event_handler_t handler,
                                     void *context) {
    (void)base, (void)id, (void)context;
    s_handler = handler;
    s_handlers++;
    return ESP_OK;
}

esp_err_t nvs_flash_init(void) {
    return ESP_OK;
}

esp_err_t nvs_flash_erase(void) {
    return ESP_OK;
}

esp_err_t esp_netif_init(void) {
    return ESP_OK;
}

esp_netif_t *esp_netif_create_default_wifi_sta(void) {
    CHECK_EQUAL(++s_interfaces, 1); /* ESP-IDF ends the program at the second */
    return (esp_netif_t *)&s_interfaces;
}

char *esp_ip4addr_ntoa(const esp_ip4_addr_t *address, char *text, int size) {
    (void)address;
    snprintf(text, (size_t)size, "192.0.2.7");
    return text;
}

esp_err_t esp_wifi_init(const wifi_init_config_t *config) {
    (void)config;
    return ++s_drivers <= s_failing_drivers ? ESP_ERR_NO_MEM : ESP_OK;
}

esp_err_t esp_wifi_set_storage(wifi_storage_t storage) {
    (void)storage;
    return ESP_OK;
}

esp_err_t esp_wifi_set_mode(wifi_mode_t mode) {
    (void)mode;
    return ESP_OK;
}

/* As the driver, it takes no configuration while it connects. */
esp_err_t esp_wifi_set_config(wifi_interface_t interface, wifi_config_t *config) {
    (void)interface;
    CHECK(!s_connecting);
    s_config = *config;
    s_sets++;
    return ESP_OK;
}

esp_err_t esp_wifi_start(void) {
    CHECK_EQUAL(s_starts++, s_stops); /* it is off */
    s_handler(NULL, WIFI_EVENT, WIFI_EVENT_STA_START, NULL);
    return ESP_OK;
}

esp_err_t esp_wifi_stop(void) {
    CHECK_EQUAL(++s_stops, s_starts); /* it is on */
    return ESP_OK;
}

/* A refused station tries again for ever: two refusals here, then the driver goes on trying. */
esp_err_t esp_wifi_connect(void) {
    ip_event_got_ip_t event = {0};
    s_connecting = true;
    s_connected = strcmp((const char *)s_config.sta.password, "right psk") == 0;
    if (s_connected) {
        s_connecting = false;
        s_handler(NULL, IP_EVENT, IP_EVENT_STA_GOT_IP, &event);
    } else if (++s_refusals <= 2) {
        tell_refused(REFUSED);
    }
    return ESP_OK;
}

esp_err_t esp_wifi_disconnect(void) {
    tell_refused(LEFT);
    return ESP_OK;
}

esp_err_t esp_wifi_set_ps(wifi_ps_type_t mode) {
    (void)mode;
    return ESP_OK;
}

static agent_provision_t s_provision;

static void provide(const char *ssid, const char *psk) {
    memset(&s_provision, 0, sizeof(s_provision));
    snprintf(s_provision.ssid, sizeof(s_provision.ssid), "%s", ssid);
    snprintf(s_provision.psk, sizeof(s_provision.psk), "%s", psk);
}

/* A failure in the middle leaves the rest to the next call, which does nothing twice. The driver may not log
 * what it connects to. */
static void test_init_goes_on_after_a_failure(void) {
    CHECK_EQUAL(station_init(), ESP_ERR_NO_MEM);
    CHECK_EQUAL(station_init(), ESP_OK);
    CHECK_EQUAL(station_init(), ESP_OK);
    CHECK_EQUAL(s_loops, 1);
    CHECK_EQUAL(s_drivers, 2);
    CHECK_EQUAL(s_handlers, 2);
    CHECK_EQUAL(esp_log_level_get("wifi"), ESP_LOG_WARN);
}

/* Corrected credentials take the place of refused ones, although the station was still trying. */
static void test_corrected_credentials_are_applied(void) {
    provide("lab", "wrong psk");
    CHECK_EQUAL(station_join(&s_provision), ESP_OK);
    CHECK(!station_wait(0));
    CHECK_EQUAL(station_last_reason(), REFUSED);
    CHECK(s_connecting);
    provide("lab", "right psk");
    CHECK_EQUAL(station_join(&s_provision), ESP_OK);
    CHECK(station_wait(0));
    CHECK_EQUAL(station_reconnects(), 0);
    CHECK_EQUAL(s_sets, 2);
}

/* The same credentials again disturb nothing; another SSID is a change as well. */
static void test_only_a_change_disturbs(void) {
    CHECK_EQUAL(station_join(&s_provision), ESP_OK);
    CHECK(station_wait(0));
    CHECK_EQUAL(s_sets, 2);
    provide("lab 2", "right psk");
    CHECK_EQUAL(station_join(&s_provision), ESP_OK);
    CHECK(station_wait(0));
    CHECK_EQUAL(s_sets, 3);
    CHECK(strcmp((const char *)s_config.sta.ssid, "lab 2") == 0);
    CHECK_EQUAL(station_reconnects(), 0);
}

/* A connection that is lost comes back by itself, also after a change. */
static void test_a_lost_connection_comes_back(void) {
    tell_refused(REFUSED);
    CHECK(s_connected && station_wait(0));
    CHECK_EQUAL(station_reconnects(), 1);
}

/* Left on purpose, it stays away until asked to join, then joins with the same credentials anew. */
static void test_it_stays_away_after_leaving(void) {
    int sets = s_sets;
    CHECK_EQUAL(station_leave(), ESP_OK);
    CHECK(!station_wait(0));
    CHECK_EQUAL(station_leave(), ESP_OK);
    CHECK_EQUAL(station_join(&s_provision), ESP_OK);
    CHECK(station_wait(0));
    CHECK_EQUAL(s_sets, sets + 1);
    CHECK_EQUAL(station_reconnects(), 1);
}

/* Switched off, it may be so twice; joining starts the driver, whose event connects. */
static void test_it_is_switched_off_and_on(void) {
    int starts = s_starts;
    CHECK_EQUAL(station_leave(), ESP_OK);
    CHECK_EQUAL(station_off(), ESP_OK);
    CHECK_EQUAL(station_off(), ESP_OK);
    CHECK_EQUAL(s_stops, 1);
    CHECK(!station_wait(0));
    CHECK_EQUAL(station_join(&s_provision), ESP_OK);
    CHECK(station_wait(0));
    CHECK_EQUAL(s_starts, starts + 1);
    CHECK_EQUAL(station_reconnects(), 1);
}

void app_main(void) {
    test_init_goes_on_after_a_failure();
    test_corrected_credentials_are_applied();
    test_only_a_change_disturbs();
    test_a_lost_connection_comes_back();
    test_it_stays_away_after_leaving();
    test_it_is_switched_off_and_on();
    exit(0);
}
