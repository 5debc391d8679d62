/* SPDX-License-Identifier: Apache-2.0 */
// ESP-IDF's SNTP client: real requests to the servers that were named. It sets the board's clock
// (system/wall_clock.c), never the machine's.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/time.h>

#include "lwip/err.h"
#include "lwip/ip.h"
#include "sdkconfig.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SNTP_MAX_SERVERS CONFIG_LWIP_SNTP_MAX_SERVERS

#define esp_sntp_sync_time sntp_sync_time
#define esp_sntp_set_sync_mode sntp_set_sync_mode
#define esp_sntp_get_sync_mode sntp_get_sync_mode
#define esp_sntp_get_sync_status sntp_get_sync_status
#define esp_sntp_set_sync_status sntp_set_sync_status
#define esp_sntp_set_time_sync_notification_cb sntp_set_time_sync_notification_cb
#define esp_sntp_set_sync_interval sntp_set_sync_interval
#define esp_sntp_get_sync_interval sntp_get_sync_interval
#define esp_sntp_restart sntp_restart

#define SNTP_OPMODE_POLL ESP_SNTP_OPMODE_POLL
#define SNTP_OPMODE_LISTENONLY ESP_SNTP_OPMODE_LISTENONLY

typedef enum {
    SNTP_SYNC_MODE_IMMED,
    SNTP_SYNC_MODE_SMOOTH, // by adjtime(); at once from 35 minutes on
} sntp_sync_mode_t;

typedef enum {
    SNTP_SYNC_STATUS_RESET,
    SNTP_SYNC_STATUS_COMPLETED, // asked for, it is RESET again
    SNTP_SYNC_STATUS_IN_PROGRESS,
} sntp_sync_status_t;

typedef enum {
    ESP_SNTP_OPMODE_POLL,
    ESP_SNTP_OPMODE_LISTENONLY, // not on the host: nothing is ever received
} esp_sntp_operatingmode_t;

// In lwIP's task.
typedef void (*sntp_sync_time_cb_t)(struct timeval *tv);

// What sets the time; a product may have its own.
void sntp_sync_time(struct timeval *tv);
void sntp_set_sync_mode(sntp_sync_mode_t sync_mode);
sntp_sync_mode_t sntp_get_sync_mode(void);
sntp_sync_status_t sntp_get_sync_status(void);
void sntp_set_sync_status(sntp_sync_status_t sync_status);
void sntp_set_time_sync_notification_cb(sntp_sync_time_cb_t callback);
void sntp_set_sync_interval(uint32_t interval_ms); // 15 s at least
uint32_t sntp_get_sync_interval(void);
bool sntp_restart(void);

void esp_sntp_setoperatingmode(esp_sntp_operatingmode_t operating_mode);
esp_sntp_operatingmode_t esp_sntp_getoperatingmode(void);
void esp_sntp_init(void);
void esp_sntp_stop(void);
bool esp_sntp_enabled(void);
void esp_sntp_setserver(u8_t idx, const ip_addr_t *addr);
const ip_addr_t *esp_sntp_getserver(u8_t idx);
// Not copied.
void esp_sntp_setservername(u8_t idx, const char *server);
const char *esp_sntp_getservername(u8_t idx);
uint8_t esp_sntp_getreachability(uint8_t idx); // a bit for each of the last eight requests

static inline void sntp_setoperatingmode(u8_t operating_mode) {
    esp_sntp_setoperatingmode((esp_sntp_operatingmode_t)operating_mode);
}

static inline void sntp_setservername(u8_t idx, const char *server) {
    esp_sntp_setservername(idx, server);
}

static inline const char *sntp_getservername(u8_t idx) {
    return esp_sntp_getservername(idx);
}

static inline const ip_addr_t *sntp_getserver(u8_t idx) {
    return esp_sntp_getserver(idx);
}

static inline void sntp_init(void) {
    esp_sntp_init();
}

#ifdef __cplusplus
}
#endif
