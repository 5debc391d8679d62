/* SPDX-License-Identifier: Apache-2.0 */
// A crash for the session to find: the tenth publish reads through a null pointer. Linked with
// -Wl,--wrap=esp_mqtt_client_publish.
#include "mqtt_client.h"

int __real_esp_mqtt_client_publish(esp_mqtt_client_handle_t client, const char *topic, const char *data,
                                   int len, int qos, int retain);
int __wrap_esp_mqtt_client_publish(esp_mqtt_client_handle_t client, const char *topic, const char *data,
                                   int len, int qos, int retain);

int __wrap_esp_mqtt_client_publish(esp_mqtt_client_handle_t client, const char *topic, const char *data,
                                   int len, int qos, int retain) {
    static int calls;
    if (++calls == 10) {
        volatile int *nowhere = NULL;
        return *nowhere;
    }
    return __real_esp_mqtt_client_publish(client, topic, data, len, qos, retain);
}
