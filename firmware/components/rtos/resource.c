/* SPDX-License-Identifier: Apache-2.0 */
#include "rtos/resource.h"

SemaphoreHandle_t rtos_resource_create(void) {
    return xSemaphoreCreateMutex();
}
