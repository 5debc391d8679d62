/* SPDX-License-Identifier: Apache-2.0 */
#include "median.h"

#include <stdlib.h>

static int by_value(const void *a, const void *b) {
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return (left > right) - (left < right);
}

uint32_t rtos_median(uint32_t *values, size_t count) {
    qsort(values, count, sizeof(values[0]), by_value);
    return values[count / 2];
}
