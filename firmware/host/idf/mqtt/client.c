/* SPDX-License-Identifier: Apache-2.0 */
// Life of a client: init, start, stop, destroy, and what is asked of a running one.
#include <stdlib.h>

#include "client_priv.h"
#include "esp_log.h"

static const char *TAG = "mqtt_client";

static bool allocate(esp_mqtt_client_handle_t client) {
    client->in.size = (size_t)client->settings.in_buffer_bytes;
    client->out.size = (size_t)client->settings.out_buffer_bytes;
    client->in.bytes = malloc(client->in.size);
    client->out.bytes = malloc(client->out.size);
    client->outbox = outbox_create();
    client->bits = xEventGroupCreate();
    return client->in.bytes != NULL && client->out.bytes != NULL && client->outbox != NULL &&
           client->bits != NULL;
}

esp_mqtt_client_handle_t esp_mqtt_client_init(const esp_mqtt_client_config_t *config) {
    esp_mqtt_client_handle_t client = calloc(1, sizeof(*client));
    if (client == NULL) {
        return NULL;
    }
    client->api_lock = xSemaphoreCreateRecursiveMutex();
    if (client->api_lock == NULL || mqtt_settings_apply(&client->settings, config) != ESP_OK ||
        !allocate(client)) {
        esp_mqtt_client_destroy(client);
        return NULL;
    }
    return client;
}

static bool create_task(esp_mqtt_client_handle_t client) {
    return xTaskCreatePinnedToCore(mqtt_task, "mqtt_task", (uint32_t)client->settings.task_stack_bytes,
                                   client, (UBaseType_t)client->settings.task_priority, &client->task,
                                   MQTT_TASK_CORE) == pdTRUE;
}

esp_err_t esp_mqtt_client_start(esp_mqtt_client_handle_t client) {
    if (client == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    mqtt_lock(client);
    bool startable =
        !client->run && (client->state == MQTT_STATE_INIT || client->state == MQTT_STATE_DISCONNECTED);
    if (startable) {
        client->state = MQTT_STATE_INIT;
        client->last_resend_ms = 0;
        client->run = true;
        xEventGroupClearBits(client->bits, MQTT_STOPPED_BIT);
        startable = create_task(client);
        client->run = startable;
    }
    mqtt_unlock(client);
    if (!startable) {
        ESP_LOGE(TAG, "Client has started, or its task cannot be created");
    }
    return startable ? ESP_OK : ESP_FAIL;
}

esp_err_t esp_mqtt_client_stop(esp_mqtt_client_handle_t client) {
    if (client == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    mqtt_lock(client);
    bool stoppable = client->run && xTaskGetCurrentTaskHandle() != client->task;
    if (stoppable) {
        if (client->state == MQTT_STATE_CONNECTED) {
            mqtt_frame_t frame = mqtt_encode_empty(&client->out, MQTT_DISCONNECT);
            mqtt_write_frame(client, &frame);
        }
        client->run = false;
        client->state = MQTT_STATE_DISCONNECTED;
    }
    mqtt_unlock(client);
    if (!stoppable) {
        ESP_LOGW(TAG, "Client asked to stop, but was not started or asks from its own task");
        return ESP_FAIL;
    }
    xEventGroupWaitBits(client->bits, MQTT_STOPPED_BIT, pdFALSE, pdTRUE, portMAX_DELAY);
    return ESP_OK;
}

esp_err_t esp_mqtt_client_destroy(esp_mqtt_client_handle_t client) {
    if (client == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    if (client->run) {
        esp_mqtt_client_stop(client);
    }
    esp_transport_list_destroy(client->transports);
    outbox_destroy(client->outbox);
    mqtt_settings_free(&client->settings);
    free(client->in.bytes);
    free(client->out.bytes);
    if (client->bits != NULL) {
        vEventGroupDelete(client->bits);
    }
    if (client->api_lock != NULL) {
        vSemaphoreDelete(client->api_lock);
    }
    free(client);
    return ESP_OK;
}

esp_err_t esp_mqtt_client_disconnect(esp_mqtt_client_handle_t client) {
    if (client == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    xEventGroupSetBits(client->bits, MQTT_DISCONNECT_BIT);
    return ESP_OK;
}

esp_err_t esp_mqtt_client_reconnect(esp_mqtt_client_handle_t client) {
    if (client == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    if (client->state != MQTT_STATE_WAIT_RECONNECT) {
        return ESP_FAIL;
    }
    client->wait_ms = 0;
    xEventGroupSetBits(client->bits, MQTT_RECONNECT_BIT);
    return ESP_OK;
}

int esp_mqtt_client_get_outbox_size(esp_mqtt_client_handle_t client) {
    if (client == NULL) {
        return 0;
    }
    mqtt_lock(client);
    int size_bytes = (int)outbox_size_bytes(client->outbox);
    mqtt_unlock(client);
    return size_bytes;
}

esp_transport_handle_t esp_mqtt_client_get_transport(esp_mqtt_client_handle_t client,
                                                     char *transport_scheme) {
    return client == NULL ? NULL : esp_transport_list_get_transport(client->transports, transport_scheme);
}
