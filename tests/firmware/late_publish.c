/* SPDX-License-Identifier: Apache-2.0 */
// A small regression for the gate to find: every publish is PUBLISH_DELAY_US late, by a loop that keeps the
// core, as a longer serialisation would. Linked with -Wl,--wrap=esp_mqtt_client_publish.
#include "esp_rom_sys.h"
#include "mqtt_client.h"

int __real_esp_mqtt_client_publish(esp_mqtt_client_handle_t client, const char *topic, const char *data,
                                   int len, int qos, int retain);
int __wrap_esp_mqtt_client_publish(esp_mqtt_client_handle_t client, const char *topic, const char *data,
                                   int len, int qos, int retain);

int __wrap_esp_mqtt_client_publish(esp_mqtt_client_handle_t client, const char *topic, const char *data,
                                   int len, int qos, int retain) {
    esp_rom_delay_us(PUBLISH_DELAY_US);
    return __real_esp_mqtt_client_publish(client, topic, data, len, qos, retain);
}
