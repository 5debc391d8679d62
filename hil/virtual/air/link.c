/* SPDX-License-Identifier: Apache-2.0 */
/* Order of processing, one direction:
 *   read -> link down? -> loss, burst loss -> duplication -> byte limit -> backlog -> transmitter (gap, rate)
 *   -> delay, jitter, reordering -> write.
 * Delay is stamped when a frame leaves the transmitter, so a changed rate applies to the backlog at once. */
#include "link.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#define READ_BATCH 32

static void transmit(direction_t *direction, uint64_t at_ns);

uint64_t clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void discard(frame_t *frame, uint64_t *cause) {
    (*cause)++;
    frame_release(&frame->direction->link->air->pool, frame);
}

static void deliver(heap_node_t *node, uint64_t now_ns) {
    frame_t *frame = (frame_t *)node;
    direction_t *direction = frame->direction;
    statistics_t *statistics = &direction->statistics;
    direction->in_flight_frames--;
    if (!direction->link->up) {
        discard(frame, &statistics->drop_down);
        return;
    }
    if (write(direction->out_fd, frame->bytes, frame->length) != (ssize_t)frame->length) {
        discard(frame, &statistics->write_errors);
        return;
    }
    statistics->delivered_frames++;
    statistics->delivered_bytes += frame->length;
    histogram_add(&statistics->delay, now_ns - frame->read_ns);
    histogram_add(&statistics->lateness, now_ns - node->due_ns);
    frame_release(&direction->link->air->pool, frame);
}

static void fly(direction_t *direction, frame_t *frame, uint64_t at_ns) {
    uint64_t due_ns = at_ns + impairment_delay_ns(&direction->impairment, &direction->state);
    if (random_hit(&direction->state.reorder, direction->impairment.reorder_ppm)) {
        due_ns = at_ns; /* overtakes everything that is delayed, as netem's reorder does */
        direction->statistics.reordered_frames++;
    } else if (direction->impairment.keep_order) {
        due_ns = due_ns > direction->last_due_ns ? due_ns : direction->last_due_ns;
        direction->last_due_ns = due_ns;
    }
    frame->node.fire = deliver;
    direction->in_flight_frames++;
    if (!heap_schedule(&direction->link->air->heap, &frame->node, due_ns)) {
        direction->in_flight_frames--;
        discard(frame, &direction->statistics.drop_memory);
    }
}

static void transmitter_fired(heap_node_t *node, uint64_t now_ns) {
    (void)now_ns;
    direction_t *direction = (direction_t *)node;
    frame_t *sent = direction->in_service;
    direction->in_service = NULL;
    if (sent != NULL) {
        fly(direction, sent, node->due_ns);
    }
    /* The planned time, not the clock: lateness of this process must not lower the rate. */
    transmit(direction, node->due_ns);
}

static void occupy(direction_t *direction, frame_t *frame, uint64_t until_ns) {
    direction->in_service = frame;
    direction->transmitter.fire = transmitter_fired;
    if (!heap_schedule(&direction->link->air->heap, &direction->transmitter, until_ns) && frame != NULL) {
        direction->in_service = NULL;
        discard(frame, &direction->statistics.drop_memory);
    }
}

/* Send from the backlog until the transmitter is busy, silenced by a gap, or has nothing left. */
static void transmit(direction_t *direction, uint64_t at_ns) {
    gap_t *gap = &direction->link->gap;
    while (direction->transmitter.slot == 0 && direction->backlog.head != NULL) {
        /* Nothing is sent before it came: what was read after `at_ns`, while this process was late, starts
         * then. */
        uint64_t read_ns = direction->backlog.head->read_ns;
        uint64_t start_ns = read_ns > at_ns ? read_ns : at_ns;
        uint64_t gap_ns = gap_end_ns(gap, start_ns);
        if (gap_ns > 0 && gap->parameters.mode == GAP_HOLD) {
            occupy(direction, NULL, gap_ns);
            return;
        }
        frame_t *frame = queue_pop(&direction->backlog);
        if (gap_ns > 0) {
            discard(frame, &direction->statistics.drop_gap);
            continue;
        }
        uint64_t airtime_ns = impairment_airtime_ns(&direction->impairment, frame->length);
        if (airtime_ns == 0) {
            fly(direction, frame, start_ns);
        } else {
            occupy(direction, frame, start_ns + airtime_ns);
        }
    }
}

uint64_t direction_backlog_bytes(const direction_t *direction) {
    return direction->backlog.bytes + (direction->in_service != NULL ? direction->in_service->length : 0);
}

static void enqueue(direction_t *direction, frame_t *frame) {
    uint64_t waiting = direction_backlog_bytes(direction) + frame->length;
    if (direction->impairment.limit_bytes > 0 && waiting > direction->impairment.limit_bytes) {
        discard(frame, &direction->statistics.drop_queue);
        return;
    }
    if (waiting > direction->statistics.backlog_max_bytes) {
        direction->statistics.backlog_max_bytes = waiting;
    }
    queue_push(&direction->backlog, frame);
}

static void duplicate(direction_t *direction, const frame_t *frame) {
    frame_t *copy = frame_take(&direction->link->air->pool);
    if (copy == NULL) {
        direction->statistics.drop_memory++;
        return;
    }
    copy->direction = direction;
    copy->read_ns = frame->read_ns;
    copy->length = frame->length;
    memcpy(copy->bytes, frame->bytes, frame->length);
    direction->statistics.duplicated_frames++;
    enqueue(direction, copy);
}

void direction_input(direction_t *direction, frame_t *frame) {
    statistics_t *statistics = &direction->statistics;
    frame->direction = direction;
    statistics->read_frames++;
    statistics->read_bytes += frame->length;
    if (!direction->link->up) {
        discard(frame, &statistics->drop_down);
        return;
    }
    loss_t loss = impairment_loss(&direction->impairment, &direction->state);
    if (loss != LOSS_NONE) {
        discard(frame, loss == LOSS_RANDOM ? &statistics->drop_loss : &statistics->drop_burst);
        return;
    }
    uint64_t read_ns = frame->read_ns;
    if (random_hit(&direction->state.duplicate, direction->impairment.duplicate_ppm)) {
        duplicate(direction, frame);
    }
    enqueue(direction, frame);
    transmit(direction, read_ns);
}

static void drop_unread(direction_t *direction) {
    uint8_t scratch[FRAME_MAX_BYTES];
    if (read(direction->in_fd, scratch, sizeof(scratch)) > 0) {
        direction->statistics.drop_memory++;
    }
}

void direction_read(direction_t *direction) {
    air_t *air = direction->link->air;
    for (int i = 0; i < READ_BATCH; i++) {
        frame_t *frame = frame_take(&air->pool);
        if (frame == NULL) {
            drop_unread(direction);
            return;
        }
        ssize_t length = read(direction->in_fd, frame->bytes, sizeof(frame->bytes));
        if (length <= 0) {
            frame_release(&air->pool, frame);
            return;
        }
        frame->length = (uint32_t)length;
        frame->read_ns = clock_ns();
        direction_input(direction, frame);
        air_fire_due(air);
    }
}

static uint64_t rescale_ns(uint64_t remaining_ns, uint64_t old_kbit, uint64_t new_kbit) {
    return new_kbit == 0 ? 0 : (uint64_t)((double)remaining_ns * (double)old_kbit / (double)new_kbit);
}

void direction_set(direction_t *direction, const impairment_t *impairment) {
    uint64_t old_kbit = direction->impairment.rate_kbit;
    direction->impairment = *impairment;
    if (direction->in_service == NULL || old_kbit == impairment->rate_kbit) {
        return;
    }
    uint64_t now_ns = clock_ns();
    uint64_t due_ns = direction->transmitter.due_ns;
    uint64_t remaining_ns =
        rescale_ns(due_ns > now_ns ? due_ns - now_ns : 0, old_kbit, impairment->rate_kbit);
    heap_reschedule(&direction->link->air->heap, &direction->transmitter, now_ns + remaining_ns);
}

static void end_hold(direction_t *direction, uint64_t now_ns) {
    if (direction->in_service == NULL && direction->transmitter.slot != 0) {
        heap_reschedule(&direction->link->air->heap, &direction->transmitter, now_ns);
    }
}

void link_set_gap(link_t *link, const gap_parameters_t *parameters) {
    uint64_t now_ns = clock_ns();
    gap_configure(&link->gap, parameters, now_ns);
    for (int i = 0; i < DIRECTIONS; i++) {
        end_hold(&link->directions[i], now_ns);
    }
}

void link_seed(link_t *link, uint64_t seed) {
    for (unsigned i = 0; i < DIRECTIONS; i++) {
        impairment_seed(&link->directions[i].state, seed, link->name, i);
    }
    link->gap.random = random_stream(seed, link->name, 1000);
    gap_parameters_t parameters = link->gap.parameters;
    link_set_gap(link, &parameters);
}

void link_init(link_t *link, air_t *air, const char *name, int access_point_fd, int board_fd) {
    memset(link, 0, sizeof(*link));
    strncpy(link->name, name, LINK_NAME_MAX - 1);
    link->air = air;
    link->up = true;
    int fds[DIRECTIONS] = {[UPLINK] = board_fd, [DOWNLINK] = access_point_fd};
    for (int i = 0; i < DIRECTIONS; i++) {
        link->directions[i].name = i == UPLINK ? "uplink" : "downlink";
        link->directions[i].link = link;
        link->directions[i].in_fd = fds[i];
        link->directions[i].out_fd = fds[1 - i];
        link->directions[i].impairment = IMPAIRMENT_DEFAULT;
    }
    link_seed(link, air->seed);
}

void air_fire_due(air_t *air) {
    uint64_t now_ns = clock_ns();
    for (heap_node_t *first = heap_first(&air->heap); first != NULL && first->due_ns <= now_ns;
         first = heap_first(&air->heap)) {
        heap_pop(&air->heap)->fire(first, now_ns);
        now_ns = clock_ns();
    }
}
