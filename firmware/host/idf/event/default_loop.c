/* SPDX-License-Identifier: Apache-2.0 */
/* The system's loop, in the task "sys_evt". */
#include <stddef.h>

#include "esp_event.h"
#include "esp_task.h"

static esp_event_loop_handle_t s_default;

esp_err_t esp_event_loop_create_default(void) {
    const esp_event_loop_args_t args = {
        .queue_size = CONFIG_ESP_SYSTEM_EVENT_QUEUE_SIZE,
        .task_name = "sys_evt",
        .task_stack_size = ESP_TASKD_EVENT_STACK,
        .task_priority = ESP_TASKD_EVENT_PRIO,
        .task_core_id = 0,
    };
    return s_default != NULL ? ESP_ERR_INVALID_STATE : esp_event_loop_create(&args, &s_default);
}

esp_err_t esp_event_loop_delete_default(void) {
    if (s_default == NULL) {
        return ESP_ERR_INVALID_STATE;
    }
    esp_err_t result = esp_event_loop_delete(s_default);
    s_default = NULL;
    return result;
}

esp_err_t esp_event_handler_register(esp_event_base_t event_base, int32_t event_id,
                                     esp_event_handler_t event_handler, void *event_handler_arg) {
    return s_default == NULL ? ESP_ERR_INVALID_STATE
                             : esp_event_handler_register_with(s_default, event_base, event_id, event_handler,
                                                               event_handler_arg);
}

esp_err_t esp_event_handler_instance_register(esp_event_base_t event_base, int32_t event_id,
                                              esp_event_handler_t event_handler, void *event_handler_arg,
                                              esp_event_handler_instance_t *instance) {
    return s_default == NULL
               ? ESP_ERR_INVALID_STATE
               : esp_event_handler_instance_register_with(s_default, event_base, event_id, event_handler,
                                                          event_handler_arg, instance);
}

esp_err_t esp_event_handler_unregister(esp_event_base_t event_base, int32_t event_id,
                                       esp_event_handler_t event_handler) {
    return s_default == NULL
               ? ESP_ERR_INVALID_STATE
               : esp_event_handler_unregister_with(s_default, event_base, event_id, event_handler);
}

esp_err_t esp_event_handler_instance_unregister(esp_event_base_t event_base, int32_t event_id,
                                                esp_event_handler_instance_t instance) {
    return s_default == NULL
               ? ESP_ERR_INVALID_STATE
               : esp_event_handler_instance_unregister_with(s_default, event_base, event_id, instance);
}

esp_err_t esp_event_post(esp_event_base_t event_base, int32_t event_id, const void *event_data,
                         size_t event_data_size, TickType_t ticks_to_wait) {
    return s_default == NULL ? ESP_ERR_INVALID_STATE
                             : esp_event_post_to(s_default, event_base, event_id, event_data, event_data_size,
                                                 ticks_to_wait);
}

esp_err_t esp_event_isr_post(esp_event_base_t event_base, int32_t event_id, const void *event_data,
                             size_t event_data_size, BaseType_t *task_unblocked) {
    return s_default == NULL ? ESP_ERR_INVALID_STATE
                             : esp_event_isr_post_to(s_default, event_base, event_id, event_data,
                                                     event_data_size, task_unblocked);
}
