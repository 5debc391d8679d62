/* SPDX-License-Identifier: Apache-2.0 */
#include "queue.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define CHUNK_FRAMES 512u

static bool grow(frame_pool_t *pool, size_t count) {
    frame_t *frames = malloc(count * sizeof(*frames));
    if (frames == NULL) {
        return false;
    }
    memset(frames, 0, count * sizeof(*frames));
    (void)mlock(frames,
                count * sizeof(*frames)); /* a page fault costs microseconds; without the right, so be it */
    for (size_t i = 0; i < count; i++) {
        frame_release(pool, &frames[i]);
    }
    pool->allocated += count;
    return true;
}

bool frame_pool_init(frame_pool_t *pool, size_t initial, size_t maximum) {
    *pool = (frame_pool_t){.maximum = maximum};
    return grow(pool, initial);
}

frame_t *frame_take(frame_pool_t *pool) {
    if (pool->unused == NULL && (pool->allocated >= pool->maximum || !grow(pool, CHUNK_FRAMES))) {
        return NULL;
    }
    frame_t *frame = pool->unused;
    pool->unused = frame->next;
    return frame;
}

void frame_release(frame_pool_t *pool, frame_t *frame) {
    frame->next = pool->unused;
    pool->unused = frame;
}

void queue_push(queue_t *queue, frame_t *frame) {
    frame->next = NULL;
    if (queue->head == NULL) {
        queue->head = frame;
    } else {
        queue->tail->next = frame;
    }
    queue->tail = frame;
    queue->bytes += frame->length;
}

frame_t *queue_pop(queue_t *queue) {
    frame_t *frame = queue->head;
    if (frame != NULL) {
        queue->head = frame->next;
        queue->bytes -= frame->length;
    }
    return frame;
}
