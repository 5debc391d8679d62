/* SPDX-License-Identifier: Apache-2.0 */
#include "node_clock.h"

#include <inttypes.h>
#include <sys/time.h>

#include "esp_netif_sntp.h"
#include "node_log.h"
#include "sdkconfig.h"
#include "settings.h"

static void on_time(struct timeval *now) {
    node_log("time", "set to %" PRId64, (int64_t)now->tv_sec);
}

void clock_start(void) {
    static char server[64]; /* is not copied */
    settings_get("node", "ntp", CONFIG_NODE_NTP_SERVER, server, sizeof server);
    if (server[0] == '\0') {
        return;
    }
    esp_sntp_config_t config = ESP_NETIF_SNTP_DEFAULT_CONFIG(server);
    config.wait_for_sync = false;
    config.sync_cb = on_time;
    ESP_ERROR_CHECK(esp_netif_sntp_init(&config));
    node_log("time", "from %s", server);
}
