/* SPDX-License-Identifier: Apache-2.0 */
// A regression for the gate to find: every publish is 20 ms late. Linked with
// -Wl,--wrap=esp_mqtt_client_publish.
#include "freertos/FreeRTOS.h"
#include "freertos/task.h"
#include "mqtt_client.h"

#define DELAY_MS 20

int __real_esp_mqtt_client_publish(esp_mqtt_client_handle_t client, const char *topic, const char *data,
                                   int len, int qos, int retain);
int __wrap_esp_mqtt_client_publish(esp_mqtt_client_handle_t client, const char *topic, const char *data,
                                   int len, int qos, int retain);

int __wrap_esp_mqtt_client_publish(esp_mqtt_client_handle_t client, const char *topic, const char *data,
                                   int len, int qos, int retain) {
    vTaskDelay(pdMS_TO_TICKS(DELAY_MS));
    return __real_esp_mqtt_client_publish(client, topic, data, len, qos, retain);
}
