/* SPDX-License-Identifier: Apache-2.0 */
#include "air.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../netif/host_interface.h"
#include "vboard.h"

static pthread_once_t s_once = PTHREAD_ONCE_INIT;
static air_t s_air;

static void read_environment(void) {
    s_air.ssid = getenv("VBOARD_AP");
    s_air.password = getenv("VBOARD_AP_PASSWORD");
}

const air_t *air(void) {
    pthread_once(&s_once, read_environment);
    return &s_air;
}

static bool same(const char *text, const uint8_t *field, size_t bytes) {
    return strlen(text) == strnlen((const char *)field, bytes) &&
           strncmp(text, (const char *)field, bytes) == 0;
}

wifi_err_reason_t air_refuses(const wifi_sta_config_t *config) {
    const air_t *found = air();
    bool unknown = found->ssid != NULL && !same(found->ssid, config->ssid, sizeof config->ssid);
    if (unknown || !host_interface_runs()) {
        return WIFI_REASON_NO_AP_FOUND;
    }
    bool wrong = found->password != NULL && !same(found->password, config->password, sizeof config->password);
    return wrong ? WIFI_REASON_4WAY_HANDSHAKE_TIMEOUT : (wifi_err_reason_t)0;
}

int air_search_ms(const wifi_sta_config_t *config, bool found) {
    bool stops_there = found && config->scan_method == WIFI_FAST_SCAN;
    return stops_there ? vboard()->channel * (AIR_SCAN_MS / 13) : AIR_SCAN_MS;
}

void air_record(const wifi_sta_config_t *config, wifi_ap_record_t *record) {
    const uint8_t bssid[] = {0x02, 0, 0, 0, 0, (uint8_t)vboard()->channel}; /* locally administered */
    const air_t *found = air();
    memset(record, 0, sizeof *record);
    if (found->ssid != NULL) {
        snprintf((char *)record->ssid, sizeof record->ssid, "%s", found->ssid);
    } else {
        memcpy(record->ssid, config->ssid, sizeof config->ssid);
    }
    memcpy(record->bssid, bssid, sizeof bssid);
    bool open = found->password != NULL ? found->password[0] == '\0' : config->password[0] == '\0';
    record->primary = (uint8_t)vboard()->channel;
    record->rssi = (int8_t)vboard()->rssi_dbm;
    record->authmode = open ? WIFI_AUTH_OPEN : WIFI_AUTH_WPA2_PSK;
    record->pairwise_cipher = record->group_cipher = open ? WIFI_CIPHER_TYPE_NONE : WIFI_CIPHER_TYPE_CCMP;
    record->phy_11b = record->phy_11g = record->phy_11n = 1;
    record->bandwidth = WIFI_BW20;
}
