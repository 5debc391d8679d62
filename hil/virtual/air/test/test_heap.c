/* SPDX-License-Identifier: Apache-2.0 */
/* The heap hands out events in due order, in scheduling order where due times are equal. */
#include "check.h"
#include "heap.h"
#include "impairment.h"

#define NODES 2000

static heap_node_t s_nodes[NODES];

static void random_times_come_out_in_order_after_rescheduling(void) {
    heap_t heap = {0};
    random_t random = {.state = 7};
    for (size_t i = 0; i < NODES; i++) {
        CHECK(heap_schedule(&heap, &s_nodes[i], random_next(&random) % 500));
    }
    for (size_t i = 0; i < NODES; i += 3) {
        heap_reschedule(&heap, &s_nodes[i], random_next(&random) % 500);
    }
    heap_node_t *previous = heap_pop(&heap);
    for (size_t i = 1; i < NODES; i++) {
        heap_node_t *node = heap_pop(&heap);
        CHECK(node->due_ns > previous->due_ns ||
              (node->due_ns == previous->due_ns && node->order > previous->order));
        CHECK(node->slot == 0);
        previous = node;
    }
    CHECK(heap_first(&heap) == NULL);
    heap_free(&heap);
}

static void an_empty_heap_has_no_first_and_takes_again(void) {
    heap_t heap = {0};
    heap_node_t node = {0};
    CHECK(heap_first(&heap) == NULL);
    CHECK(heap_schedule(&heap, &node, 5) && heap_first(&heap) == &node);
    CHECK(heap_pop(&heap) == &node);
    CHECK(heap_schedule(&heap, &node, 1) && heap_pop(&heap)->due_ns == 1);
    heap_free(&heap);
}

int main(void) {
    random_times_come_out_in_order_after_rescheduling();
    an_empty_heap_has_no_first_and_takes_again();
    return 0;
}
