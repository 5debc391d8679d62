/* SPDX-License-Identifier: Apache-2.0 */
#include "load/ring.h"

#include "esp_timer.h"

esp_err_t load_ring_create(load_ring_t *ring, size_t capacity) {
    ring->mutex = xSemaphoreCreateMutex();
    ring->pending = xSemaphoreCreateCounting((UBaseType_t)capacity + 1, 0);
    return ring->mutex != NULL && ring->pending != NULL ? ESP_OK : ESP_ERR_NO_MEM;
}

void load_ring_delete(load_ring_t *ring) {
    if (ring->mutex != NULL) {
        vSemaphoreDelete(ring->mutex);
    }
    if (ring->pending != NULL) {
        vSemaphoreDelete(ring->pending);
    }
    ring->mutex = NULL;
    ring->pending = NULL;
}

void load_ring_clear(load_ring_t *ring) {
    ring->head = 0;
    ring->count = 0;
}

static void hold(uint32_t hold_us) {
    int64_t end_us = esp_timer_get_time() + hold_us;
    while (hold_us > 0 && esp_timer_get_time() < end_us) {
    }
}

bool load_ring_push(load_ring_t *ring, size_t row, uint32_t hold_us) {
    xSemaphoreTake(ring->mutex, portMAX_DELAY);
    hold(hold_us);
    bool room = ring->count < LOAD_RING_ROWS;
    if (room) {
        ring->rows[(ring->head + ring->count++) % LOAD_RING_ROWS] = (uint16_t)row;
    }
    xSemaphoreGive(ring->mutex);
    if (room) {
        xSemaphoreGive(ring->pending);
    }
    return room;
}

void load_ring_end(load_ring_t *ring) {
    xSemaphoreGive(ring->pending);
}

bool load_ring_pop(load_ring_t *ring, size_t *row) {
    if (ring->count == 0) {
        return false;
    }
    *row = ring->rows[ring->head];
    ring->head = (ring->head + 1) % LOAD_RING_ROWS;
    ring->count--;
    return true;
}
