/* SPDX-License-Identifier: Apache-2.0 */
/* link.c and join.c of a chip: the network of the program that the agent is part of is used as it is, and
 * nothing of it is initialised, connected or left. Network interfaces, driver and station are the test's own.
 */
#include "../../components/link/esp/link.c"

#include "config.h"
#include "esp_netif.h"
#include "esp_wifi.h"
#include "expect.h"
#include "freertos/task.h"

enum { UP_AFTER_LOOKS = 3 };

static bool s_has_address, s_has_wifi;
static int s_looks_until_address = -1; /* -1: never by itself */
static int s_offs;                     /* how often it switched its radio off */
static int s_joins;                    /* how often the agent brought up a station of its own */
static const char *s_key = "WIFI_STA_DEF";
static char s_told[256];

esp_netif_t *__wrap_esp_netif_get_default_netif(void);
esp_netif_t *__wrap_esp_netif_get_default_netif(void) {
    if (s_looks_until_address > 0 && --s_looks_until_address == 0) {
        s_has_address = true;
    }
    return (esp_netif_t *)(void *)s_told;
}

bool __wrap_esp_netif_is_netif_up(esp_netif_t *netif);
bool __wrap_esp_netif_is_netif_up(esp_netif_t *netif) {
    (void)netif;
    return true; /* associated, perhaps without an address yet */
}

esp_err_t __wrap_esp_netif_get_ip_info(esp_netif_t *netif, esp_netif_ip_info_t *info);
esp_err_t __wrap_esp_netif_get_ip_info(esp_netif_t *netif, esp_netif_ip_info_t *info) {
    (void)netif;
    *info = (esp_netif_ip_info_t){.ip.addr = s_has_address ? 0x0100000a : 0};
    return ESP_OK;
}

const char *__wrap_esp_netif_get_ifkey(esp_netif_t *netif);
const char *__wrap_esp_netif_get_ifkey(esp_netif_t *netif) {
    (void)netif;
    return s_key;
}

esp_err_t __wrap_esp_wifi_get_mode(wifi_mode_t *mode);
esp_err_t __wrap_esp_wifi_get_mode(wifi_mode_t *mode) {
    *mode = WIFI_MODE_STA;
    return s_has_wifi ? ESP_OK : ESP_ERR_WIFI_NOT_INIT;
}

esp_err_t wifi_up(const agent_provision_t *provision, TickType_t timeout) {
    (void)provision, (void)timeout;
    s_joins++;
    return ESP_OK;
}

void wifi_environment(link_environment_cb_t callback, void *context) {
    callback("link", "the agent's", context);
}

bool station_started(void) {
    return s_joins > 0;
}

esp_err_t station_leave(void) {
    return ESP_OK;
}

esp_err_t station_off(void) {
    s_offs++;
    return ESP_OK;
}

static void keep_told(const char *key, const char *value, void *context) {
    (void)context;
    strcat(strcat(strcat(strcat(s_told, key), "="), value), " ");
}

static const char *told(void) {
    s_told[0] = '\0';
    link_environment(keep_told, NULL);
    return s_told;
}

/* As at boot, beside a program that has this. */
static esp_err_t first_up(bool take_network, bool has_wifi, bool has_address, uint32_t timeout_ms) {
    static const agent_provision_t none = {.ca_pem = ""};
    const agent_config_t config = {.take_network = take_network};
    config_set(&config);
    s_owner = OWNER_UNKNOWN;
    s_has_wifi = has_wifi;
    s_has_address = has_address;
    s_joins = 0;
    return link_up(&none, pdMS_TO_TICKS(timeout_ms));
}

static void what_is_up_is_answered_at_once(void) {
    TickType_t began = xTaskGetTickCount();
    EXPECT(first_up(false, true, true, 60000) == ESP_OK &&
           xTaskGetTickCount() - began < pdMS_TO_TICKS(60000));
    EXPECT(strstr(told(), "link=wifi ip=10.0.0.1 ") == s_told);
    s_key = "ETH_DEF";
    EXPECT_TEXT(told(), "link=ethernet ip=10.0.0.1 ");
    s_key = "PPP_DEF";
    EXPECT_TEXT(told(), "link=other ip=10.0.0.1 ");
    s_key = "WIFI_STA_DEF";
}

static void the_programs_address_is_waited_for(void) {
    s_looks_until_address = UP_AFTER_LOOKS;
    EXPECT(first_up(false, true, false, 60000) == ESP_OK && s_looks_until_address == 0);
    EXPECT(first_up(false, false, false, 50) == ESP_ERR_TIMEOUT);
    EXPECT_TEXT(told(), "link=down ");
}

static void a_network_of_the_programs_is_not_left(void) {
    EXPECT(first_up(false, true, true, 0) == ESP_OK && link_down() == ESP_ERR_NOT_SUPPORTED);
}

/* An agent that may take the network does so only where the program has none, and has begun none. */
static void the_agent_takes_what_is_nobodys(void) {
    EXPECT(first_up(true, true, false, 50) == ESP_ERR_TIMEOUT && s_joins == 0);
    EXPECT(first_up(true, false, true, 50) == ESP_OK && s_joins == 0);
    EXPECT(first_up(true, false, false, 50) == ESP_OK && s_joins == 1);
    s_has_address = true; /* its own now */
    EXPECT_TEXT(told(), "link=the agent's ");
    EXPECT(link_down() == ESP_OK && s_offs == 0);
    EXPECT(link_off() == ESP_OK && s_offs == 1);
}

void app_main(void) {
    what_is_up_is_answered_at_once();
    the_programs_address_is_waited_for();
    a_network_of_the_programs_is_not_left();
    the_agent_takes_what_is_nobodys();
    exit(EXIT_SUCCESS);
}
