/* SPDX-License-Identifier: Apache-2.0 */
/* The connection's events, in the mqtt task. */
#include "lwip/sockets.h"
#include "private.h"

int mqtt_link_socket(const mqtt_link_t *link) {
    char tcp[] = MQTT_OVER_TCP_SCHEME, tls[] = MQTT_OVER_SSL_SCHEME;
    esp_transport_handle_t transport =
        esp_mqtt_client_get_transport(link->client, mqtt_link_has_tls(link) ? tls : tcp);
    return transport == NULL ? -1 : esp_transport_get_socket(transport);
}

/* There is no option for it in esp-mqtt: the socket is reached through the transport. */
static void apply_nodelay(mqtt_link_t *link) {
    int socket_fd = mqtt_link_socket(link);
    int value = link->nodelay;
    socklen_t size = sizeof(value);
    setsockopt(socket_fd, IPPROTO_TCP, TCP_NODELAY, &value, sizeof(value));
    bool known = getsockopt(socket_fd, IPPROTO_TCP, TCP_NODELAY, &value, &size) == 0;
    link->nodelay_read_back = known ? value != 0 : -1;
}

static void on_connected(mqtt_link_t *link) {
    link->connects++;
    apply_nodelay(link);
    link->subscribed = 0;
    if (link->subscribe != NULL) {
        esp_mqtt_client_subscribe(link->client, link->subscribe, link->subscribe_qos);
    }
    if (link->subscribe_also != NULL) {
        esp_mqtt_client_subscribe(link->client, link->subscribe_also, link->subscribe_qos);
    }
    xEventGroupSetBits(link->bits, CONNECTED_BIT);
}

static void on_error(mqtt_link_t *link, const esp_mqtt_event_t *event) {
    link->error = *event->error_handle;
    xEventGroupSetBits(link->bits, ERROR_BIT);
}

static void on_subscribed(mqtt_link_t *link, const esp_mqtt_event_t *event) {
    int wanted = (link->subscribe != NULL) + (link->subscribe_also != NULL);
    if (event->error_handle->error_type != MQTT_ERROR_TYPE_NONE) {
        on_error(link, event);
    } else if (++link->subscribed == wanted) {
        xEventGroupSetBits(link->bits, SUBSCRIBED_BIT);
    }
}

void mqtt_link_handle_event(void *argument, esp_event_base_t base, int32_t event_id, void *event_data) {
    mqtt_link_t *link = argument;
    const esp_mqtt_event_t *event = event_data;
    (void)base;
    if (link->on_event != NULL) { /* first, so that its times are the events', and known to who waits below */
        link->on_event(link->context, event);
    }
    if (event_id == MQTT_EVENT_CONNECTED) {
        on_connected(link);
    } else if (event_id == MQTT_EVENT_SUBSCRIBED) {
        on_subscribed(link, event);
    } else if (event_id == MQTT_EVENT_ERROR) {
        on_error(link, event);
    }
}
