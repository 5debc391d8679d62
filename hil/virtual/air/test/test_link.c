/* SPDX-License-Identifier: Apache-2.0 */
/* A link moves whole frames between two descriptors, in order, by its parameters; commands change them. */
#include "check.h"
#include "control.h"
#include "link.h"

#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

typedef struct {
    air_t air;
    link_t link;
    int access_point, board; /* the far ends: what is written here enters the air */
} rig_t;

static rig_t s_rig;
static char s_reply[CONTROL_REPLY_MAX];

static const char *command(const char *text) {
    char copy[CONTROL_COMMAND_MAX];
    snprintf(copy, sizeof(copy), "%s", text);
    control_execute(&s_rig.air, copy, s_reply, sizeof(s_reply));
    return s_reply;
}

static bool accepted(const char *text) {
    return strcmp(command(text), "ok") == 0;
}

static void set_up(void) {
    int near_ap[2], near_board[2];
    memset(&s_rig, 0, sizeof(s_rig));
    CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, near_ap) == 0);
    CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, near_board) == 0);
    CHECK(frame_pool_init(&s_rig.air.pool, 64, 64));
    s_rig.air.links = &s_rig.link;
    s_rig.air.link_count = 1;
    link_init(&s_rig.link, &s_rig.air, "b1", near_ap[0], near_board[0]);
    s_rig.access_point = near_ap[1];
    s_rig.board = near_board[1];
}

static void tear_down(void) {
    close(s_rig.access_point);
    close(s_rig.board);
    close(s_rig.link.directions[UPLINK].in_fd);
    close(s_rig.link.directions[DOWNLINK].in_fd);
    heap_free(&s_rig.air.heap);
}

/* Let n frames of `length` bytes, numbered in the first byte, enter on the board's side. */
static void send_frames(int count, size_t length) {
    uint8_t bytes[FRAME_MAX_BYTES] = {0};
    for (int i = 0; i < count; i++) {
        bytes[0] = (uint8_t)i;
        CHECK(write(s_rig.board, bytes, length) == (ssize_t)length);
    }
    direction_read(&s_rig.link.directions[UPLINK]);
}

/* Run until nothing is scheduled, fast-forwarding by firing at the due times themselves. */
static void run_to_the_end(void) {
    while (heap_first(&s_rig.air.heap) != NULL) {
        heap_node_t *node = heap_pop(&s_rig.air.heap);
        node->fire(node, node->due_ns);
    }
}

static int received(void) {
    uint8_t bytes[FRAME_MAX_BYTES];
    return read(s_rig.access_point, bytes, sizeof(bytes)) > 0 ? bytes[0] : -1;
}

static void frames_keep_their_order_under_jitter(void) {
    set_up();
    CHECK(accepted("set link=b1 delay_us=100000 jitter_us=90000"));
    send_frames(20, 100);
    run_to_the_end();
    for (int i = 0; i < 20; i++) {
        CHECK(received() == i);
    }
    CHECK(received() == -1);
    tear_down();
}

static void a_reordered_frame_overtakes(void) {
    set_up();
    CHECK(accepted("set delay_us=1000000"));
    send_frames(1, 100);
    CHECK(accepted("set reorder_ppm=1000000"));
    send_frames(2, 100);
    run_to_the_end();
    CHECK(received() == 0 && received() == 1 && received() == 0);
    tear_down();
}

static void the_backlog_is_limited_in_bytes(void) {
    set_up();
    CHECK(accepted("set direction=uplink rate_kbit=8 limit_bytes=500"));
    send_frames(10, 100);
    CHECK(s_rig.link.directions[UPLINK].statistics.drop_queue == 5);
    run_to_the_end();
    CHECK(s_rig.link.directions[UPLINK].statistics.delivered_frames == 5);
    tear_down();
}

static void a_new_rate_applies_to_the_backlog(void) {
    set_up();
    CHECK(accepted("set rate_kbit=8")); /* 100 bytes take 100 ms */
    send_frames(10, 100);
    uint64_t before_ns = clock_ns();
    CHECK(accepted("set rate_kbit=800000"));
    run_to_the_end();
    direction_t *uplink = &s_rig.link.directions[UPLINK];
    CHECK(uplink->statistics.delivered_frames == 10);
    CHECK(uplink->last_due_ns - before_ns < 100000000); /* the old rate would have taken a second */
    tear_down();
}

/* The transmitter's timer fired late, and meanwhile a frame came: it starts when it came, not when the timer
 * was due. */
static void a_late_wake_up_delivers_nothing_early(void) {
    set_up();
    CHECK(accepted("set rate_kbit=8 delay_us=1000")); /* 100 bytes take 100 ms */
    send_frames(1, 100);
    direction_t *uplink = &s_rig.link.directions[UPLINK];
    frame_t *frame = frame_take(&s_rig.air.pool);
    CHECK(frame != NULL);
    const uint64_t read_ns = uplink->transmitter.due_ns + 40000000;
    frame->length = 100;
    frame->read_ns = read_ns;
    memset(frame->bytes, 1, frame->length);
    direction_input(uplink, frame);
    heap_node_t *late = heap_pop(&s_rig.air.heap);
    CHECK(late == &uplink->transmitter);
    late->fire(late, read_ns + 5000000);
    CHECK(uplink->in_service == frame && uplink->transmitter.due_ns == read_ns + 100000000);
    run_to_the_end();
    CHECK(uplink->last_due_ns == read_ns + 101000000);
    CHECK(received() == 0 && received() == 1);
    tear_down();
}

static void a_gap_holds_frames_or_drops_them(void) {
    set_up();
    CHECK(accepted("gap interval_us=1 min_us=60000000 max_us=60000000 mode=hold"));
    struct timespec pause = {.tv_nsec = 1000000};
    nanosleep(&pause, NULL); /* past the start of the gap, whose pause is some microseconds */
    send_frames(3, 100);
    direction_t *uplink = &s_rig.link.directions[UPLINK];
    CHECK(uplink->statistics.delivered_frames == 0 && uplink->backlog.bytes == 300);
    CHECK(accepted("gap interval_us=0"));
    run_to_the_end();
    CHECK(received() == 0 && received() == 1 && received() == 2);
    CHECK(accepted("gap interval_us=1 mode=drop"));
    nanosleep(&pause, NULL);
    send_frames(3, 100);
    CHECK(uplink->statistics.drop_gap == 3);
    tear_down();
}

static void duplicates_and_losses_are_counted(void) {
    set_up();
    CHECK(accepted("set duplicate_ppm=1000000"));
    send_frames(2, 100);
    CHECK(received() == 0 && received() == 0 && received() == 1 && received() == 1);
    CHECK(accepted("set duplicate_ppm=0 loss_ppm=1000000"));
    send_frames(2, 100);
    CHECK(received() == -1 && s_rig.link.directions[UPLINK].statistics.drop_loss == 2);
    CHECK(accepted("down") && accepted("set loss_ppm=0"));
    send_frames(2, 100);
    CHECK(received() == -1 && s_rig.link.directions[UPLINK].statistics.drop_down == 2);
    CHECK(accepted("up link=all"));
    send_frames(1, 100);
    CHECK(received() == 0);
    tear_down();
}

static void an_exhausted_pool_drops_and_recovers(void) {
    set_up();
    CHECK(accepted("set rate_kbit=8 limit_bytes=0"));
    for (int i = 0; i < 4; i++) {
        send_frames(20, 100);
        direction_read(&s_rig.link.directions[UPLINK]);
    }
    CHECK(s_rig.link.directions[UPLINK].statistics.drop_memory > 0);
    run_to_the_end();
    send_frames(1, 100);
    run_to_the_end();
    const statistics_t *statistics = &s_rig.link.directions[UPLINK].statistics;
    CHECK(statistics->delivered_frames > 64 && statistics->delivered_frames + statistics->drop_memory == 81);
    tear_down();
}

static void mistakes_are_answered_and_change_nothing(void) {
    set_up();
    CHECK(strstr(command("set rate_kbit=9 dleay_us=5"),
                 "error code=unknown-key key=dleay_us known=rate_kbit,"));
    CHECK(
        strstr(command("set delay_us=-5"), "error code=bad-value key=delay_us value=-5 allowed=0..60000000"));
    CHECK(strstr(command("set distribution=pareto"), "allowed=uniform,normal"));
    CHECK(strstr(command("set link=b9 delay_us=5"), "error code=unknown-link link=b9"));
    CHECK(strstr(command("set direction=left delay_us=5"), "error code=unknown-direction"));
    CHECK(strstr(command("gap interval_us=5 min_us=9 max_us=1"), "error code=bad-value key=max_us"));
    CHECK(strstr(command("set delay"), "error code=not-key-value word=delay"));
    CHECK(strstr(command("sett"), "error code=unknown-command command=sett known=info,awake,set"));
    CHECK(strstr(command(""), "error code=unknown-command"));
    CHECK(strstr(command("show direction=uplink"), " rate_kbit=0 overhead_bytes=0 delay_us=0 "));
    tear_down();
}

int main(void) {
    frames_keep_their_order_under_jitter();
    a_reordered_frame_overtakes();
    the_backlog_is_limited_in_bytes();
    a_new_rate_applies_to_the_backlog();
    a_late_wake_up_delivers_nothing_early();
    a_gap_holds_frames_or_drops_them();
    duplicates_and_losses_are_counted();
    an_exhausted_pool_drops_and_recovers();
    mistakes_are_answered_and_change_nothing();
    return 0;
}
