/* SPDX-License-Identifier: Apache-2.0 */
/* Event loops: what is posted is handled by a loop's task, or by who runs it, in the order of registering. */
#pragma once
#include <stddef.h>
#include <stdio.h>

#include "esp_err.h"
#include "esp_event_base.h"
#include "freertos/FreeRTOS.h"
#include "freertos/queue.h"
#include "freertos/semphr.h"
#include "freertos/task.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    int32_t queue_size;
    const char *task_name; /* NULL: esp_event_loop_run() handles the events */
    UBaseType_t task_priority;
    uint32_t task_stack_size;
    BaseType_t task_core_id;
} esp_event_loop_args_t;

esp_err_t esp_event_loop_create(const esp_event_loop_args_t *event_loop_args,
                                esp_event_loop_handle_t *event_loop);
esp_err_t esp_event_loop_delete(esp_event_loop_handle_t event_loop);
esp_err_t esp_event_loop_create_default(void);
esp_err_t esp_event_loop_delete_default(void);
esp_err_t esp_event_loop_run(esp_event_loop_handle_t event_loop, TickType_t ticks_to_run);

esp_err_t esp_event_handler_register(esp_event_base_t event_base, int32_t event_id,
                                     esp_event_handler_t event_handler, void *event_handler_arg);
esp_err_t esp_event_handler_register_with(esp_event_loop_handle_t event_loop, esp_event_base_t event_base,
                                          int32_t event_id, esp_event_handler_t event_handler,
                                          void *event_handler_arg);
esp_err_t esp_event_handler_instance_register(esp_event_base_t event_base, int32_t event_id,
                                              esp_event_handler_t event_handler, void *event_handler_arg,
                                              esp_event_handler_instance_t *instance);
esp_err_t esp_event_handler_instance_register_with(esp_event_loop_handle_t event_loop,
                                                   esp_event_base_t event_base, int32_t event_id,
                                                   esp_event_handler_t event_handler, void *event_handler_arg,
                                                   esp_event_handler_instance_t *instance);
esp_err_t esp_event_handler_unregister(esp_event_base_t event_base, int32_t event_id,
                                       esp_event_handler_t event_handler);
esp_err_t esp_event_handler_unregister_with(esp_event_loop_handle_t event_loop, esp_event_base_t event_base,
                                            int32_t event_id, esp_event_handler_t event_handler);
esp_err_t esp_event_handler_instance_unregister(esp_event_base_t event_base, int32_t event_id,
                                                esp_event_handler_instance_t instance);
esp_err_t esp_event_handler_instance_unregister_with(esp_event_loop_handle_t event_loop,
                                                     esp_event_base_t event_base, int32_t event_id,
                                                     esp_event_handler_instance_t instance);

/* A copy of the data waits in the loop's queue; ESP_ERR_TIMEOUT where that stays full. A handler does not
 * wait for the queue of its own loop. */
esp_err_t esp_event_post(esp_event_base_t event_base, int32_t event_id, const void *event_data,
                         size_t event_data_size, TickType_t ticks_to_wait);
esp_err_t esp_event_post_to(esp_event_loop_handle_t event_loop, esp_event_base_t event_base, int32_t event_id,
                            const void *event_data, size_t event_data_size, TickType_t ticks_to_wait);
/* At most four bytes of data. */
esp_err_t esp_event_isr_post(esp_event_base_t event_base, int32_t event_id, const void *event_data,
                             size_t event_data_size, BaseType_t *task_unblocked);
esp_err_t esp_event_isr_post_to(esp_event_loop_handle_t event_loop, esp_event_base_t event_base,
                                int32_t event_id, const void *event_data, size_t event_data_size,
                                BaseType_t *task_unblocked);

#ifdef __cplusplus
}
#endif
