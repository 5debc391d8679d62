/* SPDX-License-Identifier: Apache-2.0 */
/* The ring itself: events by number, and what reads them back. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* An event as it is sent. */
typedef struct {
    uint32_t time_us; /* since trace_start(), modulo 2^32 */
    uint32_t core;
    uint32_t event;
    uint32_t task;
    uint32_t argument;
} ring_event_t;

/* From any task, core and interrupt. Lost where the slot is being written by an event of a lap before. */
void ring_record(uint32_t event, uint32_t task, uint32_t argument);

/* The numbers of the events that are there: first <= number < end. After trace_stop(). */
uint32_t ring_first(void);
uint32_t ring_end(void);

/* One of them; false where its slot does not hold it: it was lost, or is not yet written to the end. */
bool ring_read(uint32_t number, ring_event_t *event);

bool ring_is_frozen(void);
