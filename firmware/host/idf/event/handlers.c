/* SPDX-License-Identifier: Apache-2.0 */
/* Who is called for what, in the order of registering. */
#include <stdlib.h>

#include "esp_log.h"
#include "loop.h"

static const char *TAG = "event";

static bool wants(const handler_t *handler, const post_t *post) {
    return !handler->removed && (handler->base == ESP_EVENT_ANY_BASE || handler->base == post->base) &&
           (handler->id == ESP_EVENT_ANY_ID || handler->id == post->id);
}

static void free_removed(loop_t *loop) {
    for (handler_t **link = &loop->handlers; *link != NULL;) {
        handler_t *handler = *link;
        if (handler->removed) {
            *link = handler->next;
            free(handler);
        } else {
            link = &handler->next;
        }
    }
}

void handlers_call(loop_t *loop, post_t *post) {
    void *data = !post->has_data ? NULL : post->allocated ? post->data : (void *)&post->value;
    loop->depth++;
    for (handler_t *handler = loop->handlers; handler != NULL; handler = handler->next) {
        if (wants(handler, post)) {
            handler->function(handler->argument, post->base, post->id, data);
        }
    }
    loop->depth--;
    if (loop->depth == 0) {
        free_removed(loop);
    }
}

void handlers_free(loop_t *loop) {
    for (handler_t *handler = loop->handlers; handler != NULL; handler = handler->next) {
        handler->removed = true;
    }
    free_removed(loop);
}

static handler_t **end_of(loop_t *loop) {
    handler_t **link = &loop->handlers;
    while (*link != NULL) {
        link = &(*link)->next;
    }
    return link;
}

static handler_t *find(const loop_t *loop, esp_event_base_t base, int32_t id, esp_event_handler_t function) {
    handler_t *handler = loop->handlers;
    while (handler != NULL && (handler->removed || handler->base != base || handler->id != id ||
                               handler->function != function)) {
        handler = handler->next;
    }
    return handler;
}

static esp_err_t add(loop_t *loop, const handler_t *wanted, esp_event_handler_instance_t *instance) {
    handler_t *known = find(loop, wanted->base, wanted->id, wanted->function);
    if (instance == NULL && known != NULL) {
        ESP_LOGW(TAG, "handler already registered, overwriting");
        known->argument = wanted->argument;
        return ESP_OK;
    }
    handler_t *handler = malloc(sizeof *handler);
    if (handler == NULL) {
        return ESP_ERR_NO_MEM;
    }
    *handler = *wanted;
    *end_of(loop) = handler;
    if (instance != NULL) {
        *instance = handler;
    }
    return ESP_OK;
}

static esp_err_t add_to(loop_t *loop, const handler_t *wanted, esp_event_handler_instance_t *instance) {
    bool specific_of_any = wanted->base == ESP_EVENT_ANY_BASE && wanted->id != ESP_EVENT_ANY_ID;
    if (wanted->function == NULL || specific_of_any) {
        return ESP_ERR_INVALID_ARG;
    }
    xSemaphoreTakeRecursive(loop->mutex, portMAX_DELAY);
    esp_err_t result = add(loop, wanted, instance);
    xSemaphoreGiveRecursive(loop->mutex);
    return result;
}

esp_err_t esp_event_handler_register_with(esp_event_loop_handle_t event_loop, esp_event_base_t event_base,
                                          int32_t event_id, esp_event_handler_t event_handler,
                                          void *event_handler_arg) {
    assert(event_loop != NULL);
    const handler_t wanted = {event_base, event_id, event_handler, event_handler_arg, false, NULL};
    return add_to(event_loop, &wanted, NULL);
}

esp_err_t esp_event_handler_instance_register_with(esp_event_loop_handle_t event_loop,
                                                   esp_event_base_t event_base, int32_t event_id,
                                                   esp_event_handler_t event_handler, void *event_handler_arg,
                                                   esp_event_handler_instance_t *instance) {
    assert(event_loop != NULL);
    const handler_t wanted = {event_base, event_id, event_handler, event_handler_arg, false, NULL};
    esp_event_handler_instance_t unused;
    return add_to(event_loop, &wanted, instance != NULL ? instance : &unused);
}

static void remove_from(loop_t *loop, handler_t *handler) {
    handler->removed = true;
    if (loop->depth == 0) {
        free_removed(loop);
    }
}

/* Also a handler that is not registered is ESP_OK, as ESP-IDF's. */
esp_err_t esp_event_handler_unregister_with(esp_event_loop_handle_t event_loop, esp_event_base_t event_base,
                                            int32_t event_id, esp_event_handler_t event_handler) {
    assert(event_loop != NULL);
    if ((event_base == ESP_EVENT_ANY_BASE && event_id != ESP_EVENT_ANY_ID) || event_handler == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    loop_t *loop = event_loop;
    xSemaphoreTakeRecursive(loop->mutex, portMAX_DELAY);
    handler_t *handler = find(loop, event_base, event_id, event_handler);
    if (handler != NULL) {
        remove_from(loop, handler);
    }
    xSemaphoreGiveRecursive(loop->mutex);
    return ESP_OK;
}

esp_err_t esp_event_handler_instance_unregister_with(esp_event_loop_handle_t event_loop,
                                                     esp_event_base_t event_base, int32_t event_id,
                                                     esp_event_handler_instance_t instance) {
    assert(event_loop != NULL);
    if ((event_base == ESP_EVENT_ANY_BASE && event_id != ESP_EVENT_ANY_ID) || instance == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    loop_t *loop = event_loop;
    xSemaphoreTakeRecursive(loop->mutex, portMAX_DELAY);
    handler_t *handler = loop->handlers;
    while (handler != NULL && handler != instance) {
        handler = handler->next;
    }
    if (handler != NULL && handler->base == event_base && handler->id == event_id) {
        remove_from(loop, handler);
    }
    xSemaphoreGiveRecursive(loop->mutex);
    return ESP_OK;
}
