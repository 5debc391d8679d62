/* SPDX-License-Identifier: Apache-2.0 */
/* The hardware of a general purpose timer: a counter with one alarm. Moments are nanoseconds of any one
 * clock. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define COUNTER_NEVER_NS INT64_MAX

typedef struct {
    uint64_t alarm_count;
    uint64_t reload_count;
    bool reloads; /* at the alarm, to reload_count */
} counter_alarm_t;

typedef struct {
    uint32_t resolution_hz;
    bool up;
    bool runs;
    bool pending; /* an alarm has happened that nobody took yet */
    counter_alarm_t alarm;
    uint64_t base_count; /* at base_ns */
    int64_t base_ns;
    bool armed;       /* an alarm disarms */
    int64_t alarm_ns; /* while it runs armed */
} counter_t;

/* Each of these first lets happen what was due by now_ns. */
uint64_t counter_read(counter_t *counter, int64_t now_ns);
void counter_write(counter_t *counter, uint64_t count, int64_t now_ns);
void counter_run(counter_t *counter, bool runs, int64_t now_ns);

/* Both arm or disarm. An alarm that the count has passed already is due at once, as on a chip. */
void counter_set_alarm(counter_t *counter, counter_alarm_t alarm, bool armed, int64_t now_ns);
void counter_arm(counter_t *counter, bool armed, int64_t now_ns);

/* Takes an alarm, if one has happened. One that reloads is armed again, for one period after its own moment.
 */
bool counter_take_alarm(counter_t *counter, int64_t now_ns);

/* When there is an alarm to be taken: in the past, to come, or COUNTER_NEVER_NS. */
int64_t counter_next_ns(const counter_t *counter);
