/* SPDX-License-Identifier: Apache-2.0 */
/* Calls on a chosen core: one task of priority 24 a core, made at the first call. */
#include "esp_ipc.h"

#include <pthread.h>

#include "freertos/queue.h"
#include "freertos/semphr.h"
#include "freertos/task.h"

#define IPC_PRIORITY (configMAX_PRIORITIES - 1)

typedef struct {
    esp_ipc_func_t func;
    void *arg;
    SemaphoreHandle_t progress; /* given at the start, or at the end when the call is blocking */
    bool blocking;
} call_t;

static pthread_once_t s_once = PTHREAD_ONCE_INIT;
static QueueHandle_t s_calls[portNUM_PROCESSORS];

static void serve(void *argument) {
    QueueHandle_t calls = argument;
    for (;;) {
        call_t call;
        xQueueReceive(calls, &call, portMAX_DELAY);
        if (!call.blocking) {
            xSemaphoreGive(call.progress);
        }
        call.func(call.arg);
        if (call.blocking) {
            xSemaphoreGive(call.progress);
        }
    }
}

static void start_servers(void) {
    static const char *const names[] = {"ipc0", "ipc1"};
    for (BaseType_t core = 0; core < portNUM_PROCESSORS; core++) {
        s_calls[core] = xQueueCreate(1, sizeof(call_t));
        xTaskCreatePinnedToCore(serve, names[core], CONFIG_ESP_IPC_TASK_STACK_SIZE, s_calls[core],
                                IPC_PRIORITY, NULL, core);
    }
}

static esp_err_t call_on(uint32_t cpu_id, esp_ipc_func_t func, void *arg, bool blocking) {
    if (cpu_id >= portNUM_PROCESSORS || func == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    pthread_once(&s_once, start_servers);
    SemaphoreHandle_t progress = xSemaphoreCreateBinary();
    if (progress == NULL) {
        return ESP_ERR_NO_MEM;
    }
    const call_t call = {.func = func, .arg = arg, .progress = progress, .blocking = blocking};
    xQueueSend(s_calls[cpu_id], &call, portMAX_DELAY);
    xSemaphoreTake(progress, portMAX_DELAY);
    vSemaphoreDelete(progress);
    return ESP_OK;
}

esp_err_t esp_ipc_call(uint32_t cpu_id, esp_ipc_func_t func, void *arg) {
    return call_on(cpu_id, func, arg, false);
}

esp_err_t esp_ipc_call_blocking(uint32_t cpu_id, esp_ipc_func_t func, void *arg) {
    return call_on(cpu_id, func, arg, true);
}
