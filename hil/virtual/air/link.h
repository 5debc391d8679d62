/* SPDX-License-Identifier: Apache-2.0 */
/* A link: one board's air, as two directions between a TAP at the access point and a TAP at the board. */
#pragma once

#include "heap.h"
#include "impairment.h"
#include "queue.h"
#include "statistics.h"

#define LINK_NAME_MAX 32
#define LINKS_MAX 64

typedef enum { UPLINK, DOWNLINK, DIRECTIONS } direction_index_t;

struct air;
struct link;

typedef struct direction {
    heap_node_t transmitter; /* first: fires when the frame in service is sent, or when a gap ends */
    const char *name;
    struct link *link;
    int in_fd, out_fd;
    impairment_t impairment;
    impairment_state_t state;
    queue_t backlog;
    frame_t *in_service;
    uint64_t last_due_ns;
    uint64_t in_flight_frames;
    statistics_t statistics;
} direction_t;

typedef struct link {
    char name[LINK_NAME_MAX];
    struct air *air;
    bool up;
    uint64_t still_max_us; /* the longest that the air was not let run */
    uint64_t changes;      /* commands that have changed what it does to frames; no reset takes them back */
    gap_t gap;
    direction_t directions[DIRECTIONS];
} link_t;

typedef struct air {
    heap_t heap;
    frame_pool_t pool;
    link_t *links;
    size_t link_count;
    uint64_t seed;
    int priority; /* SCHED_FIFO priority held, 0 = none */
    bool memory_locked;
} air_t;

uint64_t clock_ns(void);

void link_init(link_t *link, air_t *air, const char *name, int access_point_fd, int board_fd);
/* Start every random stream of the link anew, and its gaps from now on. */
void link_seed(link_t *link, uint64_t seed);
/* Read what waits at the direction's input, a bounded number of frames. */
void direction_read(direction_t *direction);
/* Take one frame that entered at read_ns; the pool gets it back in the end. */
void direction_input(direction_t *direction, frame_t *frame);
/* What a real buffer would hold: the frames that wait and the one being sent. */
uint64_t direction_backlog_bytes(const direction_t *direction);
void direction_set(direction_t *direction, const impairment_t *impairment);
void link_set_gap(link_t *link, const gap_parameters_t *parameters);
void air_fire_due(air_t *air);
