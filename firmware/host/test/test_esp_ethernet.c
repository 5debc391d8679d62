/* SPDX-License-Identifier: Apache-2.0 */
/* link/esp/ethernet.c against a driver that the test plays: it has a cable or none, and allows each step of
 * its initialisation once. */
#include "ethernet.h"

#include "esp_eth.h"
#include "esp_mac.h"
#include "ethernet_driver.h"
#include "idf_check.h"

esp_event_base_t const ETH_EVENT = "ETH_EVENT";
esp_event_base_t const IP_EVENT = "IP_EVENT";

static esp_event_handler_t s_handler;
static esp_netif_ip_info_t s_static;
static uint8_t s_mac[6];
static int s_interfaces, s_loops, s_parts, s_deleted, s_glues, s_handlers, s_starts;
static int s_failing_installs = 1;
static bool s_is_plugged_in, s_has_dhcp, s_runs;

static void tell(esp_event_base_t base, int32_t id) {
    ip_event_got_ip_t event = {0};
    s_handler(NULL, base, id, &event);
}

static void plug_in(void) {
    s_is_plugged_in = true;
    tell(ETH_EVENT, ETHERNET_EVENT_CONNECTED);
    if (s_has_dhcp || s_static.ip.addr != 0) {
        tell(IP_EVENT, IP_EVENT_ETH_GOT_IP);
    }
}

static void pull_out(void) {
    s_is_plugged_in = false;
    tell(ETH_EVENT, ETHERNET_EVENT_DISCONNECTED);
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

esp_err_t esp_netif_init(void) {
    return ESP_OK;
}

esp_netif_t *esp_netif_new(const esp_netif_config_t *config) {
    (void)config;
    CHECK_EQUAL(++s_interfaces, 1);
    return (esp_netif_t *)&s_interfaces;
}

esp_err_t esp_netif_attach(esp_netif_t *interface, void *glue) {
    CHECK(interface == (esp_netif_t *)&s_interfaces && glue == &s_glues);
    return ESP_OK;
}

esp_err_t esp_netif_dhcpc_stop(esp_netif_t *interface) {
    (void)interface;
    return ESP_ERR_ESP_NETIF_DHCP_ALREADY_STOPPED;
}

esp_err_t esp_netif_set_ip_info(esp_netif_t *interface, const esp_netif_ip_info_t *info) {
    (void)interface;
    s_static = *info;
    return ESP_OK;
}

char *esp_ip4addr_ntoa(const esp_ip4_addr_t *address, char *text, int size) {
    (void)address;
    snprintf(text, (size_t)size, "192.0.2.7");
    return text;
}

esp_err_t ethernet_parts_new(const link_words_t *words, ethernet_parts_t *parts) {
    CHECK_EQUAL(words->type, LINK_W5500);
    s_parts++;
    *parts = (ethernet_parts_t){0};
    return ESP_OK;
}

void ethernet_parts_delete(ethernet_parts_t *parts) {
    (void)parts;
    s_deleted++;
}

esp_err_t esp_eth_driver_install(const esp_eth_config_t *config, esp_eth_handle_t *driver) {
    (void)config;
    *driver = &s_parts;
    return s_parts <= s_failing_installs ? ESP_ERR_TIMEOUT : ESP_OK;
}

esp_eth_netif_glue_handle_t esp_eth_new_netif_glue(esp_eth_handle_t driver) {
    CHECK(driver == &s_parts);
    s_glues++;
    return &s_glues;
}

esp_err_t esp_eth_ioctl(esp_eth_handle_t driver, esp_eth_io_cmd_t command, void *data) {
    (void)driver;
    if (command == ETH_CMD_S_MAC_ADDR) {
        memcpy(s_mac, data, sizeof(s_mac));
    } else if (command == ETH_CMD_G_SPEED) {
        *(eth_speed_t *)data = ETH_SPEED_100M;
    } else {
        *(eth_duplex_t *)data = ETH_DUPLEX_FULL;
    }
    return ESP_OK;
}

/* As the driver, it is started and stopped once each, and asks the transceiver at once. */
esp_err_t esp_eth_start(esp_eth_handle_t driver) {
    (void)driver;
    CHECK(!s_runs);
    s_runs = true;
    s_starts++;
    tell(ETH_EVENT, ETHERNET_EVENT_START);
    if (s_is_plugged_in) {
        plug_in();
    }
    return ESP_OK;
}

esp_err_t esp_eth_stop(esp_eth_handle_t driver) {
    (void)driver;
    CHECK(s_runs);
    s_runs = false;
    if (s_is_plugged_in) {
        tell(ETH_EVENT, ETHERNET_EVENT_DISCONNECTED);
    }
    tell(ETH_EVENT, ETHERNET_EVENT_STOP);
    return ESP_OK;
}

/* A driver that fails leaves nothing behind, and the next call goes on there; no step is done twice. A
 * controller without a MAC of its own gets the chip's. */
static void test_init_goes_on_after_a_failure(void) {
    link_words_t words = {
        .type = LINK_W5500, .address = {192, 0, 2, 7}, .gateway = {192, 0, 2, 1}, .prefix = 24};
    CHECK_EQUAL(ethernet_init(&words), ESP_ERR_TIMEOUT);
    CHECK_EQUAL(s_deleted, 1);
    CHECK_EQUAL(ethernet_init(&words), ESP_OK);
    CHECK_EQUAL(ethernet_init(&words), ESP_OK);
    CHECK_EQUAL(s_parts, 2);
    CHECK_EQUAL(s_deleted, 1);
    CHECK_EQUAL(s_loops, 1);
    CHECK_EQUAL(s_handlers, 2);
    uint8_t own[6];
    CHECK_EQUAL(esp_read_mac(own, ESP_MAC_ETH), ESP_OK);
    CHECK_EQUAL(memcmp(s_mac, own, sizeof(own)), 0);
}

/* The interface gets the static address in the network's byte order, its mask by the prefix. */
static void test_a_static_address_is_set(void) {
    CHECK_EQUAL(memcmp(&s_static.ip.addr, (const uint8_t[4]){192, 0, 2, 7}, 4), 0);
    CHECK_EQUAL(memcmp(&s_static.netmask.addr, (const uint8_t[4]){255, 255, 255, 0}, 4), 0);
    CHECK_EQUAL(memcmp(&s_static.gw.addr, (const uint8_t[4]){192, 0, 2, 1}, 4), 0);
}

/* Without a cable there is no address, and it is known why. */
static void test_a_missing_cable_is_known(void) {
    CHECK(!ethernet_started());
    CHECK_EQUAL(ethernet_start(), ESP_OK);
    CHECK(!ethernet_wait(1) && !ethernet_has_link());
    CHECK_EQUAL(ethernet_speed_mbps(), 0);
    CHECK_EQUAL(strlen(ethernet_address()), 0);
}

/* A link without an address is told from one with it; starting again disturbs nothing. */
static void test_an_address_comes_with_the_link(void) {
    s_is_plugged_in = true;
    tell(ETH_EVENT, ETHERNET_EVENT_CONNECTED);
    CHECK(!ethernet_wait(0) && ethernet_has_link());
    tell(IP_EVENT, IP_EVENT_ETH_GOT_IP);
    CHECK_EQUAL(ethernet_start(), ESP_OK);
    CHECK_EQUAL(s_starts, 1);
    CHECK(ethernet_wait(0) && ethernet_is_full_duplex());
    CHECK_EQUAL(ethernet_speed_mbps(), 100);
    CHECK_EQUAL(strcmp(ethernet_address(), "192.0.2.7"), 0);
}

/* A cable that was pulled out counts once, whether there had been an address or not yet again. */
static void test_a_lost_connection_is_counted(void) {
    pull_out();
    CHECK(!ethernet_wait(0) && !ethernet_has_link());
    pull_out();
    CHECK_EQUAL(ethernet_reconnects(), 1);
    plug_in();
    CHECK(ethernet_wait(0));
}

/* Stopped on purpose it is no lost connection; it starts again with the same settings. */
static void test_it_stays_down_after_stopping(void) {
    CHECK_EQUAL(ethernet_stop(), ESP_OK);
    CHECK(!ethernet_started() && !ethernet_wait(0) && !ethernet_has_link());
    CHECK_EQUAL(ethernet_stop(), ESP_OK);
    CHECK_EQUAL(ethernet_start(), ESP_OK);
    CHECK(ethernet_wait(0));
    CHECK_EQUAL(ethernet_reconnects(), 1);
    CHECK_EQUAL(s_glues, 1);
}

void app_main(void) {
    test_init_goes_on_after_a_failure();
    test_a_static_address_is_set();
    test_a_missing_cable_is_known();
    test_an_address_comes_with_the_link();
    test_a_lost_connection_is_counted();
    test_it_stays_down_after_stopping();
    exit(0);
}
