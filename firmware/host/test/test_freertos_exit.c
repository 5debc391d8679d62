/* SPDX-License-Identifier: Apache-2.0 */
/* A program may end while its tasks are still being started: nothing of theirs is taken for a leak. */
#include <stddef.h>

#include "expect.h"
#include "freertos/FreeRTOS.h"
#include "freertos/task.h"

#define TASKS 24

static void sleeper(void *argument) {
    (void)argument;
    for (;;) {
        vTaskDelay(portMAX_DELAY);
    }
}

int main(void) {
    for (int i = 0; i < TASKS; i++) {
        EXPECT(xTaskCreate(sleeper, "sleeper", 4096, NULL, tskIDLE_PRIORITY, NULL) == pdPASS);
    }
    return 0;
}
