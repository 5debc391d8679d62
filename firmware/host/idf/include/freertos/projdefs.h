/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "freertos/FreeRTOSConfig.h"
#include "freertos/portmacro.h"

typedef void (*TaskFunction_t)(void *);

#define pdFALSE ((BaseType_t)0)
#define pdTRUE ((BaseType_t)1)
#define pdPASS (pdTRUE)
#define pdFAIL (pdFALSE)
#define errQUEUE_EMPTY ((BaseType_t)0)
#define errQUEUE_FULL ((BaseType_t)0)
#define errCOULD_NOT_ALLOCATE_REQUIRED_MEMORY (-1)

#define pdMS_TO_TICKS(xTimeInMs)                                                                             \
    ((TickType_t)(((TickType_t)(xTimeInMs) * (TickType_t)configTICK_RATE_HZ) / (TickType_t)1000U))
#define pdTICKS_TO_MS(xTicks) ((TickType_t)((uint64_t)(xTicks)*1000U / configTICK_RATE_HZ))
