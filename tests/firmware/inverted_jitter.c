/* SPDX-License-Identifier: Apache-2.0 */
/* The lock that tasks of different priority share as a binary semaphore: nobody inherits a priority, so a
 * task in the middle keeps the lock's owner from running, and the highest one waits for both. The link wraps
 * rtos_resource_create(), as -Wl,--wrap does. */
#include "freertos/FreeRTOS.h"
#include "freertos/semphr.h"

SemaphoreHandle_t __wrap_rtos_resource_create(void);

SemaphoreHandle_t __wrap_rtos_resource_create(void) {
    SemaphoreHandle_t lock = xSemaphoreCreateBinary();
    if (lock != NULL) {
        xSemaphoreGive(lock);
    }
    return lock;
}
