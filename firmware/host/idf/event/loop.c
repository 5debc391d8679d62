/* SPDX-License-Identifier: Apache-2.0 */
#include "loop.h"

#include <stdlib.h>
#include <string.h>

#include "esp_log.h"

static const char *TAG = "event";

static void forget(post_t *post) {
    if (post->allocated) {
        free(post->data);
    }
}

static void handle(loop_t *loop, post_t *post) {
    xSemaphoreTakeRecursive(loop->mutex, portMAX_DELAY);
    TaskHandle_t before = loop->running;
    loop->running = xTaskGetCurrentTaskHandle();
    handlers_call(loop, post);
    loop->running = before;
    xSemaphoreGiveRecursive(loop->mutex);
    forget(post);
}

esp_err_t esp_event_loop_run(esp_event_loop_handle_t event_loop, TickType_t ticks_to_run) {
    assert(event_loop != NULL);
    loop_t *loop = event_loop;
    TickType_t start = xTaskGetTickCount();
    TickType_t left = ticks_to_run;
    post_t post;
    while (xQueueReceive(loop->queue, &post, left) == pdTRUE) {
        handle(loop, &post);
        TickType_t passed = xTaskGetTickCount() - start;
        if (ticks_to_run != portMAX_DELAY) {
            if (passed >= ticks_to_run) {
                break;
            }
            left = ticks_to_run - passed;
        }
    }
    return ESP_OK;
}

static void run_loop(void *loop) {
    for (;;) {
        if (esp_event_loop_run(loop, portMAX_DELAY) != ESP_OK) {
            break;
        }
    }
    vTaskDelete(NULL);
}

static bool start_task(loop_t *loop, const esp_event_loop_args_t *args) {
    return args->task_name == NULL ||
           xTaskCreatePinnedToCore(run_loop, args->task_name, args->task_stack_size, loop,
                                   args->task_priority, &loop->task, args->task_core_id) == pdPASS;
}

static void free_loop(loop_t *loop) {
    handlers_free(loop);
    if (loop->queue != NULL) {
        vQueueDelete(loop->queue);
    }
    if (loop->mutex != NULL) {
        vSemaphoreDelete(loop->mutex);
    }
    free(loop);
}

esp_err_t esp_event_loop_create(const esp_event_loop_args_t *event_loop_args,
                                esp_event_loop_handle_t *event_loop) {
    if (event_loop_args == NULL || event_loop == NULL) {
        ESP_LOGE(TAG, "event_loop_args or event_loop was NULL");
        return ESP_ERR_INVALID_ARG;
    }
    loop_t *loop = calloc(1, sizeof *loop);
    if (loop == NULL) {
        return ESP_ERR_NO_MEM;
    }
    loop->queue = xQueueCreate((UBaseType_t)event_loop_args->queue_size, sizeof(post_t));
    loop->mutex = xSemaphoreCreateRecursiveMutex();
    if (loop->queue == NULL || loop->mutex == NULL) {
        free_loop(loop);
        return ESP_ERR_NO_MEM;
    }
    if (!start_task(loop, event_loop_args)) {
        free_loop(loop);
        return ESP_FAIL;
    }
    *event_loop = loop;
    return ESP_OK;
}

esp_err_t esp_event_loop_delete(esp_event_loop_handle_t event_loop) {
    assert(event_loop != NULL);
    loop_t *loop = event_loop;
    xSemaphoreTakeRecursive(loop->mutex, portMAX_DELAY);
    if (loop->task != NULL) {
        vTaskDelete(loop->task);
    }
    post_t post;
    while (xQueueReceive(loop->queue, &post, 0) == pdTRUE) {
        forget(&post);
    }
    xSemaphoreGiveRecursive(loop->mutex);
    free_loop(loop);
    return ESP_OK;
}

/* A handler that waited for its own loop's queue would wait for itself. */
static bool is_run_by_caller(loop_t *loop) {
    return (loop->task != NULL ? loop->task : loop->running) == xTaskGetCurrentTaskHandle();
}

esp_err_t esp_event_post_to(esp_event_loop_handle_t event_loop, esp_event_base_t event_base, int32_t event_id,
                            const void *event_data, size_t event_data_size, TickType_t ticks_to_wait) {
    assert(event_loop != NULL);
    if (event_base == ESP_EVENT_ANY_BASE || event_id == ESP_EVENT_ANY_ID) {
        return ESP_ERR_INVALID_ARG;
    }
    loop_t *loop = event_loop;
    post_t post = {.base = event_base, .id = event_id};
    if (event_data != NULL && event_data_size != 0) {
        post.data = malloc(event_data_size);
        if (post.data == NULL) {
            return ESP_ERR_NO_MEM;
        }
        memcpy(post.data, event_data, event_data_size);
        post.has_data = post.allocated = true;
    }
    if (xQueueSendToBack(loop->queue, &post, is_run_by_caller(loop) ? 0 : ticks_to_wait) != pdTRUE) {
        forget(&post);
        return ESP_ERR_TIMEOUT;
    }
    return ESP_OK;
}

esp_err_t esp_event_isr_post_to(esp_event_loop_handle_t event_loop, esp_event_base_t event_base,
                                int32_t event_id, const void *event_data, size_t event_data_size,
                                BaseType_t *task_unblocked) {
    assert(event_loop != NULL);
    post_t post = {.base = event_base, .id = event_id};
    if (event_base == ESP_EVENT_ANY_BASE || event_id == ESP_EVENT_ANY_ID ||
        event_data_size > sizeof post.value) {
        return ESP_ERR_INVALID_ARG;
    }
    if (event_data != NULL && event_data_size != 0) {
        memcpy(&post.value, event_data, event_data_size);
        post.has_data = true;
    }
    loop_t *loop = event_loop;
    return xQueueSendToBackFromISR(loop->queue, &post, task_unblocked) == pdTRUE ? ESP_OK : ESP_FAIL;
}
