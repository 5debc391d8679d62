/* SPDX-License-Identifier: Apache-2.0 */
/* A station: its states, its events and its address, and what it is told when the air has no such network.
 * The host's loopback plays the interface. */
#include "esp_wifi.h"

#include "esp_log.h"
#include "idf_check.h"
#include "lwip/dns.h"

static QueueHandle_t s_events;

typedef struct {
    esp_event_base_t base;
    int32_t id;
    int reason;
    ip_event_got_ip_t got;
} seen_t;

static void note(void *argument, esp_event_base_t base, int32_t id, void *data) {
    (void)argument;
    seen_t seen = {.base = base, .id = id};
    if (base == WIFI_EVENT && id == WIFI_EVENT_STA_DISCONNECTED) {
        seen.reason = ((wifi_event_sta_disconnected_t *)data)->reason;
    } else if (base == IP_EVENT) {
        seen.got = *(ip_event_got_ip_t *)data;
    }
    xQueueSend(s_events, &seen, 0);
}

static seen_t next(esp_event_base_t base, int32_t id) {
    seen_t seen;
    CHECK(xQueueReceive(s_events, &seen, pdMS_TO_TICKS(5000)));
    CHECK(seen.base == base);
    CHECK_EQUAL(seen.id, id);
    return seen;
}

/* Before it is initialised and started, each call says which of the two is missing. */
static void test_states(void) {
    CHECK_EQUAL(esp_wifi_set_mode(WIFI_MODE_STA), ESP_ERR_WIFI_NOT_INIT);
    CHECK_EQUAL(esp_wifi_connect(), ESP_ERR_WIFI_NOT_INIT);
    wifi_init_config_t config = WIFI_INIT_CONFIG_DEFAULT();
    CHECK_EQUAL(esp_wifi_init(&config), ESP_OK);
    CHECK_EQUAL(esp_wifi_connect(), ESP_ERR_WIFI_NOT_STARTED);
    CHECK_EQUAL(esp_wifi_set_mode(WIFI_MODE_APSTA), ESP_ERR_INVALID_ARG);
    CHECK_EQUAL(esp_wifi_set_mode(WIFI_MODE_STA), ESP_OK);
    CHECK_EQUAL(esp_wifi_start(), ESP_OK);
    next(WIFI_EVENT, WIFI_EVENT_STA_START);
    CHECK_EQUAL(esp_wifi_connect(), ESP_ERR_WIFI_SSID);
    wifi_ap_record_t record;
    CHECK_EQUAL(esp_wifi_sta_get_ap_info(&record), ESP_ERR_WIFI_NOT_CONNECT);
    CHECK_EQUAL(esp_wifi_deinit(), ESP_ERR_WIFI_NOT_STOPPED);
}

static void ask_for(const char *ssid, const char *password) {
    wifi_config_t config = {0};
    strcpy((char *)config.sta.ssid, ssid);
    strcpy((char *)config.sta.password, password);
    CHECK_EQUAL(esp_wifi_set_config(WIFI_IF_STA, &config), ESP_OK);
    CHECK_EQUAL(esp_wifi_connect(), ESP_OK);
}

/* A network that is not in the air, and a wrong password, are a disconnection with the driver's reason. */
static void test_refused(void) {
    ask_for("elsewhere", "secret-42");
    CHECK_EQUAL(next(WIFI_EVENT, WIFI_EVENT_STA_DISCONNECTED).reason, WIFI_REASON_NO_AP_FOUND);
    ask_for("rack", "wrong-42");
    CHECK_EQUAL(next(WIFI_EVENT, WIFI_EVENT_STA_DISCONNECTED).reason, WIFI_REASON_4WAY_HANDSHAKE_TIMEOUT);
}

/* Connected, then with an address, in this order; the record has the air's signal strength. */
static void test_connects(esp_netif_t *station) {
    ask_for("rack", "secret-42");
    next(WIFI_EVENT, WIFI_EVENT_STA_CONNECTED);
    seen_t seen = next(IP_EVENT, IP_EVENT_STA_GOT_IP);
    char text[IP4ADDR_STRLEN_MAX];
    CHECK(seen.got.esp_netif == station && seen.got.ip_changed);
    CHECK(strcmp(esp_ip4addr_ntoa(&seen.got.ip_info.ip, text, sizeof text), "127.0.0.1") == 0);
    CHECK(esp_netif_is_netif_up(station) && esp_netif_get_default_netif() == station);
    wifi_ap_record_t record;
    int rssi = 0;
    CHECK_EQUAL(esp_wifi_sta_get_ap_info(&record), ESP_OK);
    CHECK(strcmp((char *)record.ssid, "rack") == 0 && record.authmode == WIFI_AUTH_WPA2_PSK);
    CHECK(record.rssi == vboard()->rssi_dbm && record.primary == vboard()->channel);
    CHECK(esp_wifi_sta_get_rssi(&rssi) == ESP_OK && rssi == record.rssi);
    char name[16] = "";
    CHECK(esp_netif_get_netif_impl_name(station, name) == ESP_OK && strcmp(name, "lo") == 0);
}

/* Left, it has no address any more, and can come back. */
static void test_leaves(esp_netif_t *station) {
    esp_netif_ip_info_t info;
    CHECK_EQUAL(esp_wifi_disconnect(), ESP_OK);
    CHECK_EQUAL(next(WIFI_EVENT, WIFI_EVENT_STA_DISCONNECTED).reason, WIFI_REASON_ASSOC_LEAVE);
    CHECK_EQUAL(esp_netif_get_ip_info(station, &info), ESP_OK);
    CHECK(info.ip.addr == 0 && !esp_netif_is_netif_up(station));
    CHECK_EQUAL(esp_wifi_connect(), ESP_OK);
    next(WIFI_EVENT, WIFI_EVENT_STA_CONNECTED);
    CHECK(!next(IP_EVENT, IP_EVENT_STA_GOT_IP).got.ip_changed);
}

/* A scan finds the one network that is there, once. */
static void test_scan(void) {
    uint16_t number = 5;
    wifi_ap_record_t records[5];
    CHECK_EQUAL(esp_wifi_scan_start(NULL, true), ESP_OK);
    next(WIFI_EVENT, WIFI_EVENT_SCAN_DONE);
    CHECK_EQUAL(esp_wifi_scan_get_ap_records(&number, records), ESP_OK);
    CHECK(number == 1 && strcmp((char *)records[0].ssid, "rack") == 0);
    CHECK_EQUAL(esp_wifi_scan_get_ap_num(&number), ESP_OK);
    CHECK_EQUAL(number, 0);
}

/* An address is set only where DHCP is stopped; a name server is lwIP's. */
static void test_addresses(esp_netif_t *station) {
    esp_netif_ip_info_t info = {.ip.addr = ESP_IP4TOADDR(127, 0, 0, 1)};
    CHECK_EQUAL(esp_netif_set_ip_info(station, &info), ESP_ERR_ESP_NETIF_DHCP_NOT_STOPPED);
    CHECK_EQUAL(esp_netif_dhcpc_stop(station), ESP_OK);
    CHECK_EQUAL(esp_netif_dhcpc_stop(station), ESP_ERR_ESP_NETIF_DHCP_ALREADY_STOPPED);
    CHECK_EQUAL(esp_netif_set_ip_info(station, &info), ESP_OK);
    CHECK_EQUAL(next(IP_EVENT, IP_EVENT_STA_GOT_IP).got.ip_info.ip.addr, info.ip.addr);
    esp_netif_dns_info_t dns = {.ip = ESP_IP4ADDR_INIT(192, 0, 2, 53)};
    CHECK_EQUAL(esp_netif_set_dns_info(station, ESP_NETIF_DNS_MAIN, &dns), ESP_OK);
    CHECK_EQUAL(dns_getserver(0)->u_addr.ip4.addr, ESP_IP4TOADDR(192, 0, 2, 53));
    memset(&dns, 0, sizeof dns);
    CHECK_EQUAL(esp_netif_get_dns_info(station, ESP_NETIF_DNS_MAIN, &dns), ESP_OK);
    CHECK_EQUAL(dns.ip.u_addr.ip4.addr, ESP_IP4TOADDR(192, 0, 2, 53));
}

void app_main(void) {
    setenv("VBOARD_INTERFACE", "lo", 1);
    setenv("VBOARD_AP", "rack", 1);
    setenv("VBOARD_AP_PASSWORD", "secret-42", 1);
    s_events = xQueueCreate(8, sizeof(seen_t));
    CHECK_EQUAL(esp_event_loop_create_default(), ESP_OK);
    CHECK_EQUAL(esp_netif_init(), ESP_OK);
    esp_netif_t *station = esp_netif_create_default_wifi_sta();
    CHECK(esp_netif_get_handle_from_ifkey("WIFI_STA_DEF") == station && esp_netif_get_nr_of_ifs() == 1);
    esp_event_handler_register(WIFI_EVENT, ESP_EVENT_ANY_ID, note, NULL);
    esp_event_handler_register(IP_EVENT, ESP_EVENT_ANY_ID, note, NULL);
    test_states();
    test_refused();
    test_connects(station);
    test_leaves(station);
    test_scan();
    test_addresses(station);
    CHECK_EQUAL(esp_wifi_stop(), ESP_OK);
    next(WIFI_EVENT, WIFI_EVENT_STA_DISCONNECTED);
    next(WIFI_EVENT, WIFI_EVENT_STA_STOP);
    CHECK_EQUAL(esp_wifi_deinit(), ESP_OK);
    esp_netif_destroy_default_wifi(station);
    CHECK_EQUAL(esp_netif_get_nr_of_ifs(), 0);
    exit(0);
}
