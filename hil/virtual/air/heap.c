/* SPDX-License-Identifier: Apache-2.0 */
#include "heap.h"

#include <stdlib.h>

static bool before(const heap_node_t *a, const heap_node_t *b) {
    return a->due_ns < b->due_ns || (a->due_ns == b->due_ns && a->order < b->order);
}

static void place(heap_t *heap, size_t position, heap_node_t *node) {
    heap->nodes[position] = node;
    node->slot = position + 1;
}

static void sift_up(heap_t *heap, size_t position, heap_node_t *node) {
    while (position > 0) {
        size_t parent = (position - 1) / 2;
        if (!before(node, heap->nodes[parent])) {
            break;
        }
        place(heap, position, heap->nodes[parent]);
        position = parent;
    }
    place(heap, position, node);
}

static void sift_down(heap_t *heap, size_t position, heap_node_t *node) {
    for (;;) {
        size_t child = 2 * position + 1;
        if (child >= heap->count) {
            break;
        }
        if (child + 1 < heap->count && before(heap->nodes[child + 1], heap->nodes[child])) {
            child++;
        }
        if (!before(heap->nodes[child], node)) {
            break;
        }
        place(heap, position, heap->nodes[child]);
        position = child;
    }
    place(heap, position, node);
}

bool heap_reserve(heap_t *heap, size_t capacity) {
    if (capacity <= heap->capacity) {
        return true;
    }
    heap_node_t **nodes = realloc(heap->nodes, capacity * sizeof(*nodes));
    if (nodes == NULL) {
        return false;
    }
    heap->nodes = nodes;
    heap->capacity = capacity;
    return true;
}

bool heap_schedule(heap_t *heap, heap_node_t *node, uint64_t due_ns) {
    if (heap->count == heap->capacity && !heap_reserve(heap, heap->capacity ? 2 * heap->capacity : 64)) {
        return false;
    }
    node->due_ns = due_ns;
    node->order = heap->next_order++;
    sift_up(heap, heap->count++, node);
    return true;
}

void heap_reschedule(heap_t *heap, heap_node_t *node, uint64_t due_ns) {
    size_t position = node->slot - 1;
    bool earlier = due_ns < node->due_ns;
    node->due_ns = due_ns;
    if (earlier) {
        sift_up(heap, position, node);
    } else {
        sift_down(heap, position, node);
    }
}

heap_node_t *heap_first(const heap_t *heap) {
    return heap->count > 0 ? heap->nodes[0] : NULL;
}

heap_node_t *heap_pop(heap_t *heap) {
    heap_node_t *first = heap->nodes[0];
    heap_node_t *last = heap->nodes[--heap->count];
    if (heap->count > 0) {
        sift_down(heap, 0, last);
    }
    first->slot = 0;
    return first;
}

void heap_free(heap_t *heap) {
    free(heap->nodes);
    *heap = (heap_t){0};
}
