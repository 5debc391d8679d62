/* SPDX-License-Identifier: Apache-2.0 */
/* The network link of a chip: a Wi-Fi station or a cable, as provisioned. */
#include "link.h"

#include <string.h>

#include "esp_log.h"
#include "ethernet.h"
#include "join.h"
#include "link_words.h"
#include "station.h"
#include "tell.h"
#include "wifi.h"

static const char *TAG = "link";

enum { SAID_FROM_MS = 1000 }; /* a shorter wait is a slice of a longer one: what it finds is no fault yet */

static enum {
    OWNER_UNKNOWN,
    OWNER_PROGRAM,
    OWNER_AGENT
} s_owner;                           /* of the network, as of the first link_up() */
static char s_kept[AGENT_LINK_SIZE]; /* what the link of this boot was brought up with */
static link_type_t s_type;

/* Drivers are made once a boot, and never those of the other kind. */
static esp_err_t keep(const char *text, link_type_t type) {
    static bool done;
    if (done && (type != s_type || (type != LINK_WIFI && strcmp(text, s_kept) != 0))) {
        ESP_LOGE(TAG, "this boot has the link '%s'; restart for '%s'", done ? s_kept : "", text);
        return ESP_ERR_INVALID_STATE;
    }
    done = true;
    s_type = type;
    snprintf(s_kept, sizeof(s_kept), "%s", text);
    return ESP_OK;
}

static esp_err_t cable_up(const link_words_t *words, TickType_t timeout) {
    esp_err_t err = ethernet_init(words);
    err = err != ESP_OK ? err : ethernet_start();
    if (err != ESP_OK || ethernet_wait(timeout)) {
        return err;
    }
    if (timeout >= pdMS_TO_TICKS(SAID_FROM_MS)) {
        ESP_LOGE(TAG, "%s",
                 ethernet_has_link() ? "the cable has a link, but there came no address by DHCP"
                                     : "no link on the cable");
    }
    return ESP_ERR_TIMEOUT;
}

static esp_err_t join(TickType_t timeout) {
    if (join_wait(timeout)) {
        return ESP_OK;
    }
    if (timeout >= pdMS_TO_TICKS(SAID_FROM_MS)) {
        ESP_LOGE(TAG, "the program's network has no address, and is not the agent's to bring up");
    }
    return ESP_ERR_TIMEOUT;
}

esp_err_t link_up(const agent_provision_t *provision, TickType_t timeout) {
    link_words_t words;
    char fault[LINK_FAULT_SIZE];
    if (s_owner == OWNER_UNKNOWN) {
        s_owner = join_is_wanted() ? OWNER_PROGRAM : OWNER_AGENT;
    }
    if (s_owner == OWNER_PROGRAM) {
        return join(timeout);
    }
    if (!link_words_parse(provision->link, &words, fault)) {
        ESP_LOGE(TAG, "link: %s", fault);
        return ESP_ERR_INVALID_ARG;
    }
    esp_err_t err = keep(provision->link, words.type);
    if (err != ESP_OK) {
        return err;
    }
    return words.type == LINK_WIFI ? wifi_up(provision, timeout) : cable_up(&words, timeout);
}

esp_err_t link_down(void) {
    if (s_owner == OWNER_PROGRAM) {
        return ESP_ERR_NOT_SUPPORTED;
    }
    return s_type == LINK_WIFI ? station_leave() : ethernet_stop();
}

esp_err_t link_off(void) {
    esp_err_t err = link_down();
    return err == ESP_OK && s_type == LINK_WIFI ? station_off() : err;
}

static void tell_cable(link_environment_cb_t callback, void *context) {
    callback("link", "ethernet", context);
    callback("link_type", link_type_name(s_type), context);
    callback("cable", ethernet_has_link() ? "connected" : "no-link", context);
    if (ethernet_has_link()) {
        tell_number(callback, context, "speed_mbps", (int32_t)ethernet_speed_mbps());
        callback("duplex", ethernet_is_full_duplex() ? "full" : "half", context);
    }
    if (ethernet_address()[0] != '\0') {
        callback("ip", ethernet_address(), context);
    }
    tell_number(callback, context, "reconnects", (int32_t)ethernet_reconnects());
}

void link_environment(link_environment_cb_t callback, void *context) {
    if (s_owner == OWNER_PROGRAM) {
        join_environment(callback, context);
    } else if (station_started()) {
        wifi_environment(callback, context);
    } else if (ethernet_started()) {
        tell_cable(callback, context);
    } else {
        callback("link", "down", context);
    }
}
