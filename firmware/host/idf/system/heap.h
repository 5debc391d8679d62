/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Before the firmware's first allocation. */
void heap_init(void);

/* For what a chip takes from the heap and the host does not: whether it has so much, and that it is taken. */
bool heap_has_room(size_t bytes);
void heap_take(size_t bytes);
void heap_give(size_t bytes);
