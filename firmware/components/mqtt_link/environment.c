/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "esp_mac.h"
#include "freertos/idf_additions.h"
#include "private.h"
#include "sdkconfig.h"

#ifdef CONFIG_MBEDTLS_SSL_PROTO_TLS1_3
#define TLS_MAX_VERSION "1.3"
#else
#define TLS_MAX_VERSION "1.2"
#endif

void mqtt_link_environment(const mqtt_link_t *link) {
    TaskHandle_t task = xTaskGetHandle("mqtt_task"); /* a saved handle would outlive the task */
    bool tls = mqtt_link_has_tls(link);
    bench_environment_int(link->samples, "nodelay", link->nodelay_read_back);
    bench_environment_int(link->samples, "connects", link->connects);
    if (task != NULL) {
        BaseType_t core = xTaskGetCoreID(task);
        bench_environment_stack(link->samples, "mqtt_task", uxTaskGetStackHighWaterMark(task));
        bench_environment_int(link->samples, "mqtt_task_core", core == tskNO_AFFINITY ? -1 : core);
    }
    bench_environment_text(link->samples, "tls_max_version", tls ? TLS_MAX_VERSION : "none");
}

void mqtt_link_write_mac(char text[MQTT_LINK_MAC_SIZE]) {
    uint8_t mac[6] = {0};
    esp_read_mac(mac, ESP_MAC_WIFI_STA);
    snprintf(text, MQTT_LINK_MAC_SIZE, "%02x%02x%02x%02x%02x%02x", mac[0], mac[1], mac[2], mac[3], mac[4],
             mac[5]);
}

void mqtt_link_topic(char topic[MQTT_LINK_TOPIC_SIZE], const char *leaf) {
    char mac[MQTT_LINK_MAC_SIZE];
    mqtt_link_write_mac(mac);
    snprintf(topic, MQTT_LINK_TOPIC_SIZE, "hil/%s/%s", mac, leaf);
}
