/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

typedef struct {
    uint32_t seq;
    int64_t t_us; /* since 1970 where the clock is set, else since boot */
    int32_t temp_mc;
} reading_t;

/* Takes the next reading. Only one task does. */
reading_t sensor_read(void);
/* The temperature of the last reading, thousandths of a degree Celsius. */
int32_t sensor_last_mc(void);
