/* SPDX-License-Identifier: Apache-2.0 */
/* What a station finds in the air, as the board says in the environment. */
#pragma once
#include <stdbool.h>

#include "esp_wifi_types.h"

typedef struct {
    const char *ssid;     /* VBOARD_AP; NULL: whatever is asked for is there */
    const char *password; /* VBOARD_AP_PASSWORD; NULL: any is right */
} air_t;

/* A value that does not parse ends the program with status 2 and a sentence on stderr. */
const air_t *air(void);
/* 0: a station with this configuration is let in; else a wifi_err_reason_t. */
wifi_err_reason_t air_refuses(const wifi_sta_config_t *config);
/* How long a station looks for it, ms: 120 on each channel up to its own, or on all where it is not found or
 * all are asked for (ESP-IDF's active scan). */
int air_search_ms(const wifi_sta_config_t *config, bool found);
#define AIR_SCAN_MS (13 * 120)
/* The access point's record, by the name that the station asked for where the board names none. */
void air_record(const wifi_sta_config_t *config, wifi_ap_record_t *record);
