/* SPDX-License-Identifier: Apache-2.0 */
/* hil-air: the virtual air between the rack's access point and its boards.
 *
 *   hil-air --control-fd N [--seed N] [--priority N] --link NAME,ACCESS_POINT_DEVICE,BOARD_NETNS,BOARD_DEVICE
 * …
 *
 * --control-fd is a listening Unix socket (SOCK_SEQPACKET). Prints "ready" when every device exists. */
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "control.h"
#include "link.h"
#include "tap.h"

#define POOL_INITIAL 1024
#define POOL_MAXIMUM 32768
#define EVENTS 32
#define BEAT_MS 100u

typedef struct source source_t;
struct source {
    int fd;
    void (*ready)(source_t *source);
    direction_t *direction;
};

static air_t s_air;
static int s_epoll_fd, s_timer_fd;
static bool s_stop;

static void watch(source_t *source, int fd, void (*ready)(source_t *)) {
    source->fd = fd;
    source->ready = ready;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = source};
    if (epoll_ctl(s_epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0) {
        err(3, "watching descriptor %d", fd);
    }
}

static void on_frames(source_t *source) {
    direction_read(source->direction);
}

static void on_timer(source_t *source) {
    uint64_t expirations;
    (void)!read(source->fd, &expirations, sizeof(expirations));
}

/* Beats that were missed: what came meanwhile looks as if it had come when the air went on. */
static void on_beat(source_t *source) {
    uint64_t beats = 0;
    (void)!read(source->fd, &beats, sizeof(beats));
    uint64_t still_us = beats > 1 ? (beats - 1) * BEAT_MS * 1000u : 0;
    for (size_t i = 0; i < s_air.link_count; i++) {
        if (still_us > s_air.links[i].still_max_us) {
            s_air.links[i].still_max_us = still_us;
        }
    }
}

static int beat_descriptor(void) {
    struct itimerspec beats = {.it_value.tv_nsec = BEAT_MS * 1000000u,
                               .it_interval.tv_nsec = BEAT_MS * 1000000u};
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (fd < 0 || timerfd_settime(fd, 0, &beats, NULL) != 0) {
        err(3, "a timer");
    }
    return fd;
}

static void on_signal(source_t *source) {
    (void)source;
    s_stop = true;
}

static void on_command(source_t *source) {
    static char command[CONTROL_COMMAND_MAX], reply[CONTROL_REPLY_MAX];
    ssize_t length = recv(source->fd, command, sizeof(command) - 1, 0);
    if (length < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (length > 0) {
        command[length] = '\0';
        control_execute(&s_air, command, reply, sizeof(reply));
        if (send(source->fd, reply, strlen(reply), MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) {
            return;
        }
    }
    close(source->fd); /* the client left, or does not read its replies: frames come first */
    free(source);
}

static void on_client(source_t *source) {
    int fd = accept4(source->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    source_t *client = fd < 0 ? NULL : calloc(1, sizeof(*client));
    if (client != NULL) {
        watch(client, fd, on_command);
    } else if (fd >= 0) {
        close(fd);
    }
}

static void add_link(char *description) {
    char *cursor;
    const char *name = strtok_r(description, ",", &cursor);
    const char *access_point_device = strtok_r(NULL, ",", &cursor);
    const char *netns_path = strtok_r(NULL, ",", &cursor);
    const char *board_device = strtok_r(NULL, ",", &cursor);
    if (board_device == NULL || strlen(name) >= LINK_NAME_MAX || s_air.link_count == LINKS_MAX) {
        errx(2, "bad --link; at most %d of NAME,ACCESS_POINT_DEVICE,BOARD_NETNS,BOARD_DEVICE", LINKS_MAX);
    }
    int access_point_fd = tap_open("", access_point_device);
    int board_fd = tap_open(netns_path, board_device);
    link_init(&s_air.links[s_air.link_count++], &s_air, name, access_point_fd, board_fd);
}

static void take_priority(int priority) {
    struct sched_param parameter = {.sched_priority = priority};
    bool granted = priority > 0 && sched_setscheduler(0, SCHED_FIFO, &parameter) == 0;
    s_air.priority = granted ? priority : 0;
    s_air.memory_locked = mlockall(MCL_CURRENT) == 0;
    prctl(PR_SET_TIMERSLACK, 1UL); /* counts without real-time priority; the default slack is 50 µs */
}

static void arm_timer(void) {
    static uint64_t armed_ns;
    const heap_node_t *first = heap_first(&s_air.heap);
    uint64_t due_ns = first != NULL ? first->due_ns : 0;
    if (due_ns == armed_ns) {
        return;
    }
    armed_ns = due_ns;
    struct itimerspec when = {
        .it_value = {.tv_sec = (time_t)(due_ns / 1000000000u), .tv_nsec = (long)(due_ns % 1000000000u)}};
    timerfd_settime(s_timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
}

static void run(void) {
    while (!s_stop) {
        struct epoll_event events[EVENTS];
        int count = epoll_wait(s_epoll_fd, events, EVENTS, -1);
        for (int i = 0; i < count; i++) {
            source_t *source = events[i].data.ptr;
            source->ready(source);
        }
        air_fire_due(&s_air);
        arm_timer();
    }
}

static int signal_descriptor(void) {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    return signalfd(-1, &signals, SFD_CLOEXEC);
}

static int parse_options(int argc, char **argv) {
    static const struct option OPTIONS[] = {{"control-fd", required_argument, NULL, 'c'},
                                            {"seed", required_argument, NULL, 's'},
                                            {"priority", required_argument, NULL, 'p'},
                                            {"link", required_argument, NULL, 'l'},
                                            {0}};
    int control_fd = -1, priority = 0;
    for (int option; (option = getopt_long(argc, argv, "", OPTIONS, NULL)) != -1;) {
        switch (option) {
        case 'c':
            control_fd = atoi(optarg);
            break;
        case 's':
            s_air.seed = strtoull(optarg, NULL, 10);
            break;
        case 'p':
            priority = atoi(optarg);
            break;
        case 'l':
            add_link(optarg);
            break;
        default:
            exit(2);
        }
    }
    take_priority(priority);
    return control_fd;
}

static void watch_links(void) {
    static source_t sources[LINKS_MAX * DIRECTIONS];
    for (size_t i = 0; i < s_air.link_count * DIRECTIONS; i++) {
        sources[i].direction = &s_air.links[i / DIRECTIONS].directions[i % DIRECTIONS];
        watch(&sources[i], sources[i].direction->in_fd, on_frames);
    }
}

int main(int argc, char **argv) {
    static source_t timer, beat, control, signals;
    s_air.links = calloc(LINKS_MAX, sizeof(link_t));
    bool reserved = heap_reserve(&s_air.heap, POOL_MAXIMUM + LINKS_MAX * DIRECTIONS);
    if (s_air.links == NULL || !reserved || !frame_pool_init(&s_air.pool, POOL_INITIAL, POOL_MAXIMUM)) {
        errx(3, "no memory");
    }
    int control_fd = parse_options(argc, argv);
    if (control_fd < 0 || s_air.link_count == 0) {
        errx(2, "--control-fd and at least one --link are needed, --seed before --link");
    }
    s_epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    s_timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    watch(&timer, s_timer_fd, on_timer);
    watch(&beat, beat_descriptor(), on_beat);
    watch(&control, control_fd, on_client);
    watch(&signals, signal_descriptor(), on_signal);
    watch_links();
    puts("ready");
    fflush(stdout);
    run();
    return 0;
}
