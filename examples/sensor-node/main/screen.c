/* SPDX-License-Identifier: Apache-2.0 */
#include "screen.h"

#include <inttypes.h>
#include <stdio.h>

#include "display.h"
#include "esp_timer.h"
#include "freertos/FreeRTOS.h"
#include "freertos/task.h"
#include "net.h"
#include "node_log.h"
#include "sdkconfig.h"
#include "sensor.h"
#include "uplink.h"

#define TASK_STACK_BYTES 4096
#define LINE_PX 9
#define GRAPH_TOP_PX 38
#define MC_PER_PX 100

static display_t s_display;
static int8_t s_heights[DISPLAY_WIDTH];

static void draw_graph(uint32_t frame) {
    int32_t height = (sensor_last_mc() - 20000) / MC_PER_PX;
    int32_t most = DISPLAY_HEIGHT - GRAPH_TOP_PX;
    height = height < 1 ? 1 : height > most ? most : height;
    s_heights[frame % DISPLAY_WIDTH] = (int8_t)height;
    for (int x = 0; x < DISPLAY_WIDTH; x++) {
        int column = s_heights[(frame + 1 + (uint32_t)x) % DISPLAY_WIDTH];
        display_line(&s_display, x, DISPLAY_HEIGHT - column, DISPLAY_HEIGHT - 1);
    }
}

static void draw(uint32_t frame) {
    char text[24];
    char address[16];
    int32_t mc = sensor_last_mc();
    net_address(address, sizeof address);
    display_clear(&s_display);
    snprintf(text, sizeof text, "IP %s", address);
    display_text(&s_display, 0, 0, text);
    snprintf(text, sizeof text, "%" PRId32 ".%02" PRId32 " C", mc / 1000, mc % 1000 / 10);
    display_text(&s_display, 0, LINE_PX, text);
    snprintf(text, sizeof text, "SENT %" PRIu32, uplink_sent());
    display_text(&s_display, 0, 2 * LINE_PX, text);
    snprintf(text, sizeof text, "ACKED %" PRIu32 "%s", uplink_acked(), uplink_is_up() ? "" : " DOWN");
    display_text(&s_display, 0, 3 * LINE_PX, text);
    draw_graph(frame);
}

static void show(void *arg) {
    TickType_t last = xTaskGetTickCount();
    (void)arg;
    for (uint32_t frame = 1;; frame++) {
        int64_t begun_us = esp_timer_get_time();
        draw(frame);
        uint32_t crc = display_crc(&s_display);
        int64_t took_us = esp_timer_get_time() - begun_us;
        if (frame % CONFIG_NODE_DISPLAY_FPS == 0) {
            node_log("disp", "frame=%" PRIu32 " crc=%08" PRIx32 " took=%dus", frame, crc, (int)took_us);
        }
        vTaskDelayUntil(&last, pdMS_TO_TICKS(1000 / CONFIG_NODE_DISPLAY_FPS));
    }
}

void screen_start(void) {
    xTaskCreate(show, "screen", TASK_STACK_BYTES, NULL, CONFIG_NODE_DISPLAY_PRIORITY, NULL);
}
