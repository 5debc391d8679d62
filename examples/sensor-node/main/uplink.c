/* SPDX-License-Identifier: Apache-2.0 */
#include "uplink.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cJSON.h"
#include "commands.h"
#include "esp_mac.h"
#include "esp_ota_ops.h"
#include "esp_system.h"
#include "esp_timer.h"
#include "freertos/FreeRTOS.h"
#include "freertos/semphr.h"
#include "freertos/task.h"
#include "mqtt_client.h"
#include "node_log.h"
#include "sdkconfig.h"
#include "sensor.h"
#include "settings.h"

#define TASK_STACK_BYTES 4096
#define TASK_PRIORITY 6
#define OUTBOX_BYTES 16384
#define WAITING 256 /* messages that may be without their acknowledgement */
#define NO_READING 0
#define PERIOD_MIN_MS 10
#define PERIOD_MAX_MS 3600000

/* The broker may acknowledge a message before esp_mqtt_client_publish() has said what its number is. So
 * either side leaves a note here, and whoever comes second logs. */
typedef struct {
    int msg_id; /* 0: free */
    uint32_t seq;
    bool acked;
} note_t;

static esp_mqtt_client_handle_t s_client;
static SemaphoreHandle_t s_notes_lock;
static note_t s_notes[WAITING];
static size_t s_next_note;
static TaskHandle_t s_task;
static atomic_bool s_up;
static atomic_uint s_sent;
static atomic_uint s_acked;
static atomic_uint s_period_ms;
static char s_mac[13];
static char s_reading_topic[32];
static char s_command_topic[32];
static char s_reply_topic[32];

/* Returns whether the other side has been here before, and what it knew; else leaves the note. */
static bool note(note_t *mine) {
    bool met = false;
    xSemaphoreTake(s_notes_lock, portMAX_DELAY);
    for (size_t i = 0; i < WAITING && !met; i++) {
        if (s_notes[i].msg_id == mine->msg_id && s_notes[i].acked != mine->acked) {
            mine->seq = mine->acked ? s_notes[i].seq : mine->seq;
            s_notes[i].msg_id = 0;
            met = true;
        }
    }
    if (!met) {
        s_notes[s_next_note++ % WAITING] = *mine;
    }
    xSemaphoreGive(s_notes_lock);
    return met;
}

static void settle(note_t mine) {
    if (note(&mine) && mine.seq != NO_READING) {
        atomic_fetch_add(&s_acked, 1);
        node_log("pub", "ack seq=%" PRIu32 " msg=%d", mine.seq, mine.msg_id);
    }
}

static void on_up(void) {
    node_log("mqtt", "up");
    atomic_store(&s_up, true);
    esp_mqtt_client_subscribe(s_client, s_command_topic, 1);
    esp_ota_mark_app_valid_cancel_rollback(); /* an update that reaches the broker stays */
    xTaskNotifyGive(s_task);
}

static void on_data(const esp_mqtt_event_t *event) {
    bool whole = event->current_data_offset == 0 && event->data_len == event->total_data_len;
    if (whole && event->topic_len == (int)strlen(s_command_topic) &&
        memcmp(event->topic, s_command_topic, event->topic_len) == 0) {
        commands_handle(event->data, event->data_len);
    }
}

static void on_event(void *arg, esp_event_base_t base, int32_t id, void *data) {
    (void)arg;
    (void)base;
    const esp_mqtt_event_t *event = data;
    switch (id) {
    case MQTT_EVENT_CONNECTED:
        on_up();
        break;
    case MQTT_EVENT_DISCONNECTED:
        if (atomic_exchange(&s_up, false)) {
            node_log("mqtt", "down");
        }
        break;
    case MQTT_EVENT_PUBLISHED:
        settle((note_t){.msg_id = event->msg_id, .acked = true});
        break;
    case MQTT_EVENT_DATA:
        on_data(event);
        break;
    case MQTT_EVENT_ERROR:
        node_log("mqtt", "error type=%d refused=%d", event->error_handle->error_type,
                 event->error_handle->connect_return_code);
        break;
    default:
        break;
    }
}

static char *to_json(const reading_t *reading) {
    char t_us[24];
    cJSON *json = cJSON_CreateObject();
    snprintf(t_us, sizeof t_us, "%" PRId64, reading->t_us);
    cJSON_AddNumberToObject(json, "seq", reading->seq);
    cJSON_AddRawToObject(json, "t_us", t_us); /* as a number it would lose digits */
    cJSON_AddNumberToObject(json, "temp_mC", reading->temp_mc);
    cJSON_AddNumberToObject(json, "heap", esp_get_free_heap_size());
    char *text = cJSON_PrintUnformatted(json);
    cJSON_Delete(json);
    return text;
}

#if CONFIG_NODE_SLOW_PUBLISH > 0
static void work_us(int64_t us) {
    int64_t end = esp_timer_get_time() + us;
    while (esp_timer_get_time() < end) {
    }
}
#endif

static void publish(const reading_t *reading) {
    char *json = to_json(reading);
    if (json == NULL) {
        node_log("pub", "lost seq=%" PRIu32 " no memory", reading->seq);
        return;
    }
    node_log("pub", "q seq=%" PRIu32, reading->seq);
#if CONFIG_NODE_SLOW_PUBLISH > 0
    work_us(CONFIG_NODE_SLOW_PUBLISH);
#endif
    int msg_id = esp_mqtt_client_publish(s_client, s_reading_topic, json, 0, 1, 0);
    cJSON_free(json);
    if (msg_id < 0) {
        node_log("pub", "lost seq=%" PRIu32 " %s", reading->seq,
                 msg_id == -2 ? "outbox full" : "not published");
        return;
    }
    atomic_fetch_add(&s_sent, 1);
    settle((note_t){.msg_id = msg_id, .seq = reading->seq});
}

static bool is_dropped(uint32_t seq) {
#if CONFIG_NODE_DROP_EVERY > 0
    return seq % CONFIG_NODE_DROP_EVERY == 0;
#else
    (void)seq;
    return false;
#endif
}

static void publish_readings(void *arg) {
    (void)arg;
    ulTaskNotifyTake(pdTRUE, portMAX_DELAY); /* until the broker is there for the first time */
    TickType_t last = xTaskGetTickCount();
    for (;;) {
        const reading_t reading = sensor_read();
        if (!is_dropped(reading.seq)) {
            publish(&reading);
        }
        vTaskDelayUntil(&last, pdMS_TO_TICKS(atomic_load(&s_period_ms)));
    }
}

static void name_topics(void) {
    uint8_t mac[6];
    ESP_ERROR_CHECK(esp_read_mac(mac, ESP_MAC_WIFI_STA));
    snprintf(s_mac, sizeof s_mac, "%02x%02x%02x%02x%02x%02x", mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
    snprintf(s_reading_topic, sizeof s_reading_topic, "sensors/%s/reading", s_mac);
    snprintf(s_command_topic, sizeof s_command_topic, "sensors/%s/cmd", s_mac);
    snprintf(s_reply_topic, sizeof s_reply_topic, "sensors/%s/reply", s_mac);
}

static esp_mqtt_client_handle_t make_client(const char *uri) {
    static char user[64];
    static char password[64];
    char client_id[24];
    settings_get("mqtt", "user", CONFIG_NODE_MQTT_USER, user, sizeof user);
    settings_get("mqtt", "password", CONFIG_NODE_MQTT_PASSWORD, password, sizeof password);
    snprintf(client_id, sizeof client_id, "node-%s", s_mac);
    const esp_mqtt_client_config_t config = {
        .broker.address.uri = uri,
        .broker.verification.certificate = settings_get_text("tls", "ca"), /* stays: it is not copied */
        .credentials.username = user[0] != '\0' ? user : NULL,
        .credentials.authentication.password = password[0] != '\0' ? password : NULL,
        .credentials.client_id = client_id,
        .session.keepalive = 30,
        .network.reconnect_timeout_ms = 2000,
        .outbox.limit = OUTBOX_BYTES,
    };
    return esp_mqtt_client_init(&config);
}

void uplink_start(void) {
    char uri[128];
    settings_get("mqtt", "uri", CONFIG_NODE_MQTT_URI, uri, sizeof uri);
    if (uri[0] == '\0') {
        node_log("mqtt", "no broker: set mqtt <uri> [user password], then reboot");
        return;
    }
    name_topics();
    s_notes_lock = xSemaphoreCreateMutex();
    atomic_store(&s_period_ms, settings_get_u32("node", "period_ms", CONFIG_NODE_PERIOD_MS));
    s_client = make_client(uri);
    if (s_client == NULL) {
        node_log("mqtt", "not a broker's address: %s", uri);
        return;
    }
    xTaskCreate(publish_readings, "readings", TASK_STACK_BYTES, NULL, TASK_PRIORITY, &s_task);
    ESP_ERROR_CHECK(esp_mqtt_client_register_event(s_client, MQTT_EVENT_ANY, on_event, NULL));
    ESP_ERROR_CHECK(esp_mqtt_client_start(s_client));
    node_log("mqtt", "connecting to %s as %s", uri, s_mac);
}

void uplink_reply(const char *json) {
    int msg_id = esp_mqtt_client_publish(s_client, s_reply_topic, json, 0, 1, 0);
    if (msg_id > 0) {
        settle((note_t){.msg_id = msg_id, .seq = NO_READING});
    }
}

bool uplink_set_period(uint32_t ms) {
    if (ms < PERIOD_MIN_MS || ms > PERIOD_MAX_MS) {
        return false;
    }
    atomic_store(&s_period_ms, ms);
    return settings_set_u32("node", "period_ms", ms) == ESP_OK;
}

bool uplink_is_up(void) {
    return atomic_load(&s_up);
}

uint32_t uplink_sent(void) {
    return atomic_load(&s_sent);
}

uint32_t uplink_acked(void) {
    return atomic_load(&s_acked);
}
