/* SPDX-License-Identifier: Apache-2.0 */
/* From what the board was told to a client that is connected. */
#include <stdio.h>

#include "private.h"

#define CLIENT_ID_SIZE sizeof("hil-0123456789ab")

enum {
    CHECK_MS = 100, /* how often a wait looks for an abort */
};

const mqtt_link_settings_t mqtt_link_defaults = {.outbox_limit_bytes = 32768, .reconnect_ms = 1000};

const char *const mqtt_link_transports[] = {"tcp", "tls", "mtls", "password", NULL};

uint16_t mqtt_link_port(const mqtt_link_t *link) {
    const agent_provision_t *provision = bench_provision(link->run);
    if (link->host != NULL) {
        return link->port;
    }
    switch (link->transport) {
    case MQTT_LINK_TLS:
        return provision->broker_tls_port;
    case MQTT_LINK_MTLS:
        return provision->broker_mtls_port;
    case MQTT_LINK_PASSWORD:
        return provision->broker_password_port;
    default:
        return provision->broker_tcp_port;
    }
}

bool mqtt_link_has_tls(const mqtt_link_t *link) {
    return link->transport == MQTT_LINK_TLS || link->transport == MQTT_LINK_MTLS;
}

/* What this transport needs and was not provisioned; NULL where all is there. */
static const char *missing(const mqtt_link_t *link) {
    const agent_provision_t *provision = bench_provision(link->run);
    if (link->host != NULL) {
        return NULL;
    }
    if (provision->broker_host[0] == '\0' || mqtt_link_port(link) == 0) {
        return "the broker";
    }
    if (mqtt_link_has_tls(link) && provision->ca_pem[0] == '\0') {
        return "the CA certificate";
    }
    if (link->transport == MQTT_LINK_MTLS &&
        (provision->client_cert_pem[0] == '\0' || provision->client_key_pem[0] == '\0')) {
        return "the client certificate or its key";
    }
    if (link->transport == MQTT_LINK_PASSWORD &&
        (provision->mqtt_username[0] == '\0' || provision->mqtt_password[0] == '\0')) {
        return "the user name or the password";
    }
    return NULL;
}

/* esp-mqtt's own default repeats among boards with the same last bytes, and is a constant on the linux
 * target. */
static void write_client_id(char *id) {
    char mac[MQTT_LINK_MAC_SIZE];
    mqtt_link_write_mac(mac);
    snprintf(id, CLIENT_ID_SIZE, "hil-%s", mac);
}

static esp_err_t create_client(mqtt_link_t *link) {
    char client_id[CLIENT_ID_SIZE];
    write_client_id(client_id);
    const agent_provision_t *provision = bench_provision(link->run);
    bool tls = mqtt_link_has_tls(link), mutual = link->transport == MQTT_LINK_MTLS;
    bool password = link->transport == MQTT_LINK_PASSWORD;
    const mqtt_link_settings_t *settings = link->settings != NULL ? link->settings : &mqtt_link_defaults;
    const esp_mqtt_client_config_t config = {
        .broker.address.hostname = link->host != NULL ? link->host : provision->broker_host,
        .broker.address.port = mqtt_link_port(link),
        .broker.address.transport = tls ? MQTT_TRANSPORT_OVER_SSL : MQTT_TRANSPORT_OVER_TCP,
        .broker.verification.certificate = tls ? provision->ca_pem : NULL,
        .credentials.client_id = client_id,
        .credentials.username = password ? provision->mqtt_username : NULL,
        .credentials.authentication.password = password ? provision->mqtt_password : NULL,
        .credentials.authentication.certificate = mutual ? provision->client_cert_pem : NULL,
        .credentials.authentication.key = mutual ? provision->client_key_pem : NULL,
        .session.disable_clean_session = settings->keep_session,
        .session.keepalive = settings->keepalive_s,
        .network.reconnect_timeout_ms = settings->reconnect_ms,
        .network.timeout_ms = settings->network_timeout_ms,
        .buffer.size = settings->buffer_bytes,
        .outbox.limit = settings->outbox_limit_bytes,
    };
    link->client = esp_mqtt_client_init(&config);
    if (link->client == NULL) {
        return ESP_ERR_NO_MEM;
    }
    return esp_mqtt_client_register_event(link->client, MQTT_EVENT_ANY, mqtt_link_handle_event, link);
}

/* Until all of `wanted` are set, or an error is, or the time is up. */
static EventBits_t await_bits(const mqtt_link_t *link, EventBits_t wanted) {
    EventBits_t bits = 0;
    for (int waited_ms = 0; waited_ms < CONNECT_TIMEOUT_MS && !bench_aborted(link->run);
         waited_ms += CHECK_MS) {
        bits = xEventGroupWaitBits(link->bits, wanted, pdFALSE, pdTRUE, pdMS_TO_TICKS(CHECK_MS));
        if ((bits & wanted) == wanted || (bits & ERROR_BIT) != 0) {
            break;
        }
    }
    return bits;
}

static esp_err_t start(mqtt_link_t *link) {
    link->bits = xEventGroupCreate();
    esp_err_t err = link->bits == NULL ? ESP_ERR_NO_MEM : create_client(link);
    return err == ESP_OK ? esp_mqtt_client_start(link->client) : err;
}

esp_err_t mqtt_link_open(mqtt_link_t *link) {
    const char *absent = missing(link);
    if (absent != NULL) {
        return bench_fail(link->samples, BENCH_OWNER_CONFIGURATION, ESP_ERR_INVALID_STATE,
                          "%s of transport=%s was not provisioned", absent,
                          mqtt_link_transports[link->transport]);
    }
    esp_err_t err = start(link);
    if (err != ESP_OK) {
        return err;
    }
    EventBits_t wanted = CONNECTED_BIT | (link->subscribe != NULL ? SUBSCRIBED_BIT : 0);
    EventBits_t bits = await_bits(link, wanted);
    return (bits & wanted) == wanted ? ESP_OK : mqtt_link_fail(link, bits);
}

void mqtt_link_close(mqtt_link_t *link) {
    if (link->client != NULL) {
        esp_mqtt_client_destroy(link->client);
    }
    if (link->bits != NULL) {
        vEventGroupDelete(link->bits);
    }
    link->client = NULL;
    link->bits = NULL;
}
