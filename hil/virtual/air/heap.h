/* SPDX-License-Identifier: Apache-2.0 */
/* Min-heap of events by due time. Nodes live inside their owners, so nothing is allocated per event. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct heap_node heap_node_t;

struct heap_node {
    uint64_t due_ns;
    uint64_t order; /* breaks ties: equal due times fire in the order of scheduling */
    size_t slot;    /* position + 1; 0 = not scheduled */
    void (*fire)(heap_node_t *node, uint64_t now_ns);
};

typedef struct {
    heap_node_t **nodes;
    size_t count;
    size_t capacity;
    uint64_t next_order;
} heap_t;

/* False when there is no memory for another node. */
bool heap_schedule(heap_t *heap, heap_node_t *node, uint64_t due_ns);
void heap_reschedule(heap_t *heap, heap_node_t *node, uint64_t due_ns);
heap_node_t *heap_first(const heap_t *heap);
heap_node_t *heap_pop(heap_t *heap);
bool heap_reserve(heap_t *heap, size_t capacity);
void heap_free(heap_t *heap);
