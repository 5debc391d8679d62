/* SPDX-License-Identifier: Apache-2.0 */
#include "wifi.h"

#include <stdio.h>

#include "esp_wifi.h"
#include "station.h"
#include "tell.h"

static esp_err_t error_of_reason(uint8_t reason) {
    switch (reason) {
    case WIFI_REASON_NO_AP_FOUND:
    case WIFI_REASON_NO_AP_FOUND_W_COMPATIBLE_SECURITY:
    case WIFI_REASON_NO_AP_FOUND_IN_AUTHMODE_THRESHOLD:
    case WIFI_REASON_NO_AP_FOUND_IN_RSSI_THRESHOLD:
        return ESP_ERR_WIFI_SSID;
    case WIFI_REASON_AUTH_FAIL:
    case WIFI_REASON_MIC_FAILURE:
    case WIFI_REASON_4WAY_HANDSHAKE_TIMEOUT:
    case WIFI_REASON_HANDSHAKE_TIMEOUT:
        return ESP_ERR_WIFI_PASSWORD;
    default:
        return ESP_ERR_TIMEOUT;
    }
}

esp_err_t wifi_up(const agent_provision_t *provision, TickType_t timeout) {
    if (provision->ssid[0] == '\0') {
        return ESP_ERR_INVALID_ARG;
    }
    esp_err_t err = station_init();
    err = err != ESP_OK ? err : station_join(provision);
    if (err != ESP_OK) {
        return err;
    }
    return station_wait(timeout) ? ESP_OK : error_of_reason(station_last_reason());
}

static const char *power_save_name(wifi_ps_type_t mode) {
    switch (mode) {
    case WIFI_PS_NONE:
        return "none";
    case WIFI_PS_MIN_MODEM:
        return "min_modem";
    default:
        return "max_modem";
    }
}

static void tell_access_point(link_environment_cb_t callback, void *context, const wifi_ap_record_t *ap) {
    char bssid[18];
    snprintf(bssid, sizeof(bssid), "%02x:%02x:%02x:%02x:%02x:%02x", ap->bssid[0], ap->bssid[1], ap->bssid[2],
             ap->bssid[3], ap->bssid[4], ap->bssid[5]);
    callback("bssid", bssid, context);
    tell_number(callback, context, "rssi_dbm", ap->rssi);
    tell_number(callback, context, "channel", ap->primary);
    callback("phy", ap->phy_11ax ? "11ax" : ap->phy_11n ? "11n" : ap->phy_11g ? "11g" : "11b", context);
}

void wifi_environment(link_environment_cb_t callback, void *context) {
    wifi_ap_record_t ap;
    wifi_ps_type_t power_save;
    callback("link", "wifi", context);
    if (esp_wifi_get_ps(&power_save) == ESP_OK) {
        callback("power_save", power_save_name(power_save), context);
    }
    if (station_address()[0] != '\0') {
        callback("ip", station_address(), context);
    }
    if (esp_wifi_sta_get_ap_info(&ap) == ESP_OK) {
        tell_access_point(callback, context, &ap);
    }
    tell_number(callback, context, "reconnects", (int32_t)station_reconnects());
    tell_number(callback, context, "disconnect_reason", station_last_reason());
}
