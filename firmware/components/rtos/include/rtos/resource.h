/* SPDX-License-Identifier: Apache-2.0 */
/* What tasks of different priority share in the benches: one lock, made in one place. */
#pragma once

#include "freertos/FreeRTOS.h"
#include "freertos/semphr.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A mutex, whose owner inherits the priority of who waits for it. NULL where there is no memory. */
SemaphoreHandle_t rtos_resource_create(void);

#ifdef __cplusplus
}
#endif
