/* SPDX-License-Identifier: Apache-2.0 */
#include "ethernet.h"

#include <stdatomic.h>
#include <string.h>

#include "esp_check.h"
#include "esp_eth.h"
#include "esp_event.h"
#include "esp_mac.h"
#include "esp_netif.h"
#include "ethernet_driver.h"
#include "freertos/event_groups.h"

static const char *TAG = "ethernet";

enum { HAS_LINK = BIT0, HAS_ADDRESS = BIT1, HAS_STOPPED = BIT2, STOP_MS = 1000 };

static EventGroupHandle_t s_events;
static esp_netif_t *s_interface;
static esp_eth_handle_t s_driver;
static link_words_t s_words;
static atomic_uint s_reconnects;
static atomic_bool s_started;
static char s_address[16];

static void on_disconnected(void) {
    bool had_address = (xEventGroupClearBits(s_events, HAS_LINK | HAS_ADDRESS) & HAS_ADDRESS) != 0;
    if (had_address && atomic_load(&s_started)) {
        atomic_fetch_add(&s_reconnects, 1);
    }
}

static void on_event(void *unused, esp_event_base_t base, int32_t id, void *data) {
    (void)unused;
    if (base == ETH_EVENT && id == ETHERNET_EVENT_CONNECTED) {
        xEventGroupSetBits(s_events, HAS_LINK);
    } else if (base == ETH_EVENT && id == ETHERNET_EVENT_DISCONNECTED) {
        on_disconnected();
    } else if (base == ETH_EVENT && id == ETHERNET_EVENT_STOP) {
        xEventGroupClearBits(s_events, HAS_LINK | HAS_ADDRESS);
        xEventGroupSetBits(s_events, HAS_STOPPED);
    } else if (base == IP_EVENT && id == IP_EVENT_ETH_GOT_IP) {
        const ip_event_got_ip_t *event = data;
        esp_ip4addr_ntoa(&event->ip_info.ip, s_address, sizeof(s_address));
        xEventGroupSetBits(s_events, HAS_ADDRESS);
    } else if (base == IP_EVENT && id == IP_EVENT_ETH_LOST_IP) {
        xEventGroupClearBits(s_events, HAS_ADDRESS);
    }
}

static esp_err_t create_events(void) {
    s_events = xEventGroupCreate();
    return s_events != NULL ? ESP_OK : ESP_ERR_NO_MEM;
}

static esp_err_t create_interface(void) {
    esp_netif_config_t config = ESP_NETIF_DEFAULT_ETH();
    s_interface = esp_netif_new(&config);
    return s_interface != NULL ? ESP_OK : ESP_ERR_NO_MEM;
}

static esp_err_t install_driver(void) {
    ethernet_parts_t parts;
    ESP_RETURN_ON_ERROR(ethernet_parts_new(&s_words, &parts), TAG, "%s", link_type_name(s_words.type));
    esp_eth_config_t config = ETH_DEFAULT_CONFIG(parts.mac, parts.phy);
    esp_err_t err = esp_eth_driver_install(&config, &s_driver);
    if (err != ESP_OK) {
        ethernet_parts_delete(&parts);
    }
    return err;
}

/* A W5500 has none of its own; an emulator and the EMAC's driver set theirs themselves. */
static esp_err_t set_mac(void) {
    uint8_t mac[6];
    if (s_words.has_mac) {
        memcpy(mac, s_words.mac, sizeof(mac));
    } else if (s_words.type == LINK_W5500) {
        ESP_RETURN_ON_ERROR(esp_read_mac(mac, ESP_MAC_ETH), TAG, "read the chip's MAC");
    } else {
        return ESP_OK;
    }
    return esp_eth_ioctl(s_driver, ETH_CMD_S_MAC_ADDR, mac);
}

static esp_err_t attach(void) {
    esp_eth_netif_glue_handle_t glue = esp_eth_new_netif_glue(s_driver);
    return glue != NULL ? esp_netif_attach(s_interface, glue) : ESP_ERR_NO_MEM;
}

static esp_err_t set_address(void) {
    if (s_words.prefix == 0) {
        return ESP_OK;
    }
    esp_netif_ip_info_t info = {.netmask.addr = esp_netif_htonl(UINT32_MAX << (32 - s_words.prefix))};
    memcpy(&info.ip.addr, s_words.address, sizeof(info.ip.addr));
    memcpy(&info.gw.addr, s_words.gateway, sizeof(info.gw.addr));
    esp_err_t err = esp_netif_dhcpc_stop(s_interface);
    if (err != ESP_OK && err != ESP_ERR_ESP_NETIF_DHCP_ALREADY_STOPPED) {
        return err;
    }
    return esp_netif_set_ip_info(s_interface, &info);
}

static esp_err_t register_ethernet_handler(void) {
    return esp_event_handler_register(ETH_EVENT, ESP_EVENT_ANY_ID, on_event, NULL);
}

static esp_err_t register_ip_handler(void) {
    return esp_event_handler_register(IP_EVENT, ESP_EVENT_ANY_ID, on_event, NULL);
}

esp_err_t ethernet_init(const link_words_t *words) {
    static esp_err_t (*const steps[])(void) = {
        create_events,
        esp_netif_init,
        esp_event_loop_create_default,
        create_interface,
        install_driver,
        set_mac,
        attach,
        set_address,
        register_ethernet_handler,
        register_ip_handler,
    };
    static size_t done; /* most of them can be done once only: after a failure it goes on where it was */
    s_words = *words;
    for (; done < sizeof(steps) / sizeof(steps[0]); done++) {
        ESP_RETURN_ON_ERROR(steps[done](), TAG, "init step %u", (unsigned)done);
    }
    return ESP_OK;
}

esp_err_t ethernet_start(void) {
    if (atomic_load(&s_started)) {
        return ESP_OK;
    }
    atomic_store(&s_started, true);
    esp_err_t err = esp_eth_start(s_driver);
    if (err != ESP_OK) {
        atomic_store(&s_started, false);
    }
    return err;
}

esp_err_t ethernet_stop(void) {
    if (!atomic_exchange(&s_started, false)) {
        return ESP_OK;
    }
    xEventGroupClearBits(s_events, HAS_ADDRESS | HAS_STOPPED);
    ESP_RETURN_ON_ERROR(esp_eth_stop(s_driver), TAG, "stop");
    xEventGroupWaitBits(s_events, HAS_STOPPED, pdTRUE, pdTRUE, pdMS_TO_TICKS(STOP_MS));
    return ESP_OK;
}

bool ethernet_started(void) {
    return atomic_load(&s_started);
}

bool ethernet_wait(TickType_t timeout) {
    return (xEventGroupWaitBits(s_events, HAS_ADDRESS, pdFALSE, pdTRUE, timeout) & HAS_ADDRESS) != 0;
}

static bool has(EventBits_t bit) {
    return s_events != NULL && (xEventGroupGetBits(s_events) & bit) != 0;
}

bool ethernet_has_link(void) {
    return has(HAS_LINK);
}

uint32_t ethernet_speed_mbps(void) {
    eth_speed_t speed;
    if (!ethernet_has_link() || esp_eth_ioctl(s_driver, ETH_CMD_G_SPEED, &speed) != ESP_OK) {
        return 0;
    }
    return speed == ETH_SPEED_100M ? 100 : 10;
}

bool ethernet_is_full_duplex(void) {
    eth_duplex_t duplex;
    return ethernet_has_link() && esp_eth_ioctl(s_driver, ETH_CMD_G_DUPLEX_MODE, &duplex) == ESP_OK &&
           duplex == ETH_DUPLEX_FULL;
}

uint32_t ethernet_reconnects(void) {
    return atomic_load(&s_reconnects);
}

const char *ethernet_address(void) {
    return has(HAS_ADDRESS) ? s_address : "";
}
