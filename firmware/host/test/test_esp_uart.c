/* SPDX-License-Identifier: Apache-2.0 */
/* Writes lines from two tasks on two cores at once; whoever reads the console must find every line whole. */
#include "esp_log.h"
#include "idf_check.h"

#define LINES 300

static SemaphoreHandle_t s_done;

static void write_lines(void *argument) {
    int writer = (int)(intptr_t)argument;
    for (int i = 0; i < LINES; i++) {
        if (i % 2 == 0) {
            printf("writer %d line %d %0100d end\n", writer, i, i);
        } else {
            ESP_LOGI("uart", "writer %d line %d %0100d end", writer, i, i);
        }
    }
    xSemaphoreGive(s_done);
    vTaskDelete(NULL);
}

void app_main(void) {
    vTaskPrioritySet(NULL, 10);
    s_done = xSemaphoreCreateCounting(2, 0);
    spawn(write_lines, (void *)0, 5, 0);
    spawn(write_lines, (void *)1, 5, 1);
    CHECK(xSemaphoreTake(s_done, portMAX_DELAY));
    CHECK(xSemaphoreTake(s_done, portMAX_DELAY));
    exit(0);
}
