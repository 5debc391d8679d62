/* SPDX-License-Identifier: Apache-2.0 */
/* Frames: a bounded pool that does not allocate while frames flow, and the first-in first-out backlog. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heap.h"

#define FRAME_MAX_BYTES 2048

typedef struct frame frame_t;
struct direction;

struct frame {
    heap_node_t node; /* first: a fired node is its frame */
    frame_t *next;
    struct direction *direction;
    uint64_t read_ns;
    uint32_t length;
    uint8_t bytes[FRAME_MAX_BYTES];
};

typedef struct {
    frame_t *unused;
    size_t allocated;
    size_t maximum;
} frame_pool_t;

typedef struct {
    frame_t *head;
    frame_t *tail;
    uint64_t bytes;
} queue_t;

/* Touches `initial` frames so that they are resident. False when there is no memory. */
bool frame_pool_init(frame_pool_t *pool, size_t initial, size_t maximum);
/* NULL when `maximum` frames are in use. */
frame_t *frame_take(frame_pool_t *pool);
void frame_release(frame_pool_t *pool, frame_t *frame);

void queue_push(queue_t *queue, frame_t *frame);
frame_t *queue_pop(queue_t *queue);
