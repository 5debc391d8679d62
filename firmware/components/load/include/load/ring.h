/* SPDX-License-Identifier: Apache-2.0 */
/* A ring of rows under a mutex, between a producer and a consumer task. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "esp_err.h"
#include "freertos/FreeRTOS.h"
#include "freertos/semphr.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { LOAD_RING_ROWS = 32 };

typedef struct {
    SemaphoreHandle_t mutex;   /* guards rows, head, count */
    SemaphoreHandle_t pending; /* counts rows put in, and one more at the end */
    uint16_t rows[LOAD_RING_ROWS];
    size_t head;
    size_t count;
} load_ring_t;

/* `capacity` is the longest burst. Returns ESP_ERR_NO_MEM. */
esp_err_t load_ring_create(load_ring_t *ring, size_t capacity);
void load_ring_delete(load_ring_t *ring);

/* Forget what is in it; between bursts, when nobody uses it. */
void load_ring_clear(load_ring_t *ring);

/* Put a row in, keeping the mutex and the core busy for `hold_us` as reading a sensor by polling does.
 * Returns false when the ring is full. */
bool load_ring_push(load_ring_t *ring, size_t row, uint32_t hold_us);

/* Count once more than there are rows, so that the consumer wakes and finds nothing: the end. */
void load_ring_end(load_ring_t *ring);

/* Take the oldest row out; false when there is none. Call it with the mutex. */
bool load_ring_pop(load_ring_t *ring, size_t *row);

#ifdef __cplusplus
}
#endif
