/* SPDX-License-Identifier: Apache-2.0 */
/* A slowdown for the gate to find: each publish is late, by a loop that keeps the core, as a longer
 * serialisation would. An ordinary image has none of it (Kconfig); it is linked with
 * -Wl,--wrap=esp_mqtt_client_publish. */
#include "esp_rom_sys.h"
#include "mqtt_client.h"
#include "sdkconfig.h"

int __real_esp_mqtt_client_publish(esp_mqtt_client_handle_t client, const char *topic, const char *data,
                                   int len, int qos, int retain);
int __wrap_esp_mqtt_client_publish(esp_mqtt_client_handle_t client, const char *topic, const char *data,
                                   int len, int qos, int retain);

int __wrap_esp_mqtt_client_publish(esp_mqtt_client_handle_t client, const char *topic, const char *data,
                                   int len, int qos, int retain) {
    esp_rom_delay_us(CONFIG_HIL_PLANT_PUBLISH_US);
    return __real_esp_mqtt_client_publish(client, topic, data, len, qos, retain);
}
