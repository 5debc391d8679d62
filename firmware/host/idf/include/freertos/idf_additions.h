/* SPDX-License-Identifier: Apache-2.0 */
/* ESP-IDF's own additions to FreeRTOS for two cores. */
#pragma once
#include "freertos/FreeRTOS.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tskTaskControlBlock *TaskHandle_t;

BaseType_t xTaskCreatePinnedToCore(TaskFunction_t pxTaskCode, const char *const pcName,
                                   const uint32_t ulStackDepth, void *const pvParameters,
                                   UBaseType_t uxPriority, TaskHandle_t *const pxCreatedTask,
                                   const BaseType_t xCoreID);
TaskHandle_t xTaskCreateStaticPinnedToCore(TaskFunction_t pxTaskCode, const char *const pcName,
                                           const uint32_t ulStackDepth, void *const pvParameters,
                                           UBaseType_t uxPriority, StackType_t *const puxStackBuffer,
                                           StaticTask_t *const pxTaskBuffer, const BaseType_t xCoreID);
BaseType_t xTaskGetCoreID(TaskHandle_t xTask);
#define xTaskGetAffinity(task) xTaskGetCoreID(task)

/* Microseconds that the core was idle since reset, 32 bits: good for differences below 71 minutes. */
configRUN_TIME_COUNTER_TYPE ulTaskGetIdleRunTimeCounterForCore(BaseType_t xCoreID);
configRUN_TIME_COUNTER_TYPE ulTaskGetIdleRunTimePercentForCore(BaseType_t xCoreID);

#ifdef __cplusplus
}
#endif
