/* SPDX-License-Identifier: Apache-2.0 */
/* The witness of the host's lateness: what it notes, and what it says of a stretch. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "agent/watch.h"
#include "esp_timer.h"
#include "idf_check.h"
#include "spells.h"

#define OUTAGE_US 20000
#define UNSEEN_US 500 /* an outage is seen from the witness's next wake on */
#define ABOVE_ALL 40  /* as a priority of Linux */

static int64_t s_late_max_us;
static int64_t s_late_count;

/* The end line is played. */
void __wrap_bench_environment_int(bench_samples_t *samples, const char *key, int64_t value) {
    (void)samples;
    if (strcmp(key, "host_late_max_us") == 0) {
        s_late_max_us = value;
    } else {
        CHECK(strcmp(key, "host_late_count") == 0);
        s_late_count = value;
    }
}

static spells_t s_spells;

/* A spell counts for every stretch that it overlaps, whole. */
static void test_overlap(void) {
    spells_clear(&s_spells);
    CHECK_EQUAL(spells_worst_us(&s_spells, 0, INT64_MAX), 0);
    spells_note(&s_spells, (spell_t){1000, 1200});
    spells_note(&s_spells, (spell_t){2000, 2900});
    spells_note(&s_spells, (spell_t){3000, 3100});
    CHECK_EQUAL(spells_worst_us(&s_spells, 0, INT64_MAX), 900);
    CHECK_EQUAL(spells_worst_us(&s_spells, 0, 999), 0);
    CHECK_EQUAL(spells_worst_us(&s_spells, 0, 1000), 200);
    CHECK_EQUAL(spells_worst_us(&s_spells, 1200, 1999), 200);
    CHECK_EQUAL(spells_worst_us(&s_spells, 1201, 1999), 0);
    CHECK_EQUAL(spells_worst_us(&s_spells, 2100, 2110), 900);
    CHECK_EQUAL(spells_worst_us(&s_spells, 2901, 5000), 100);
    CHECK_EQUAL(spells_worst_us(&s_spells, 3101, INT64_MAX), 0);
}

/* More spells than are kept are counted; the stretch of those is late as a whole, by the worst of them. */
static void test_overflow(void) {
    const int64_t last_us = (SPELLS_KEPT - 1) * 1000LL;
    spells_clear(&s_spells);
    for (int64_t i = 0; i < SPELLS_KEPT; i++) {
        spells_note(&s_spells, (spell_t){i * 1000, i * 1000 + 100});
    }
    CHECK_EQUAL(spells_worst_us(&s_spells, last_us + 101, INT64_MAX), 0);
    spells_note(&s_spells, (spell_t){last_us + 1000, last_us + 1700});
    spells_note(&s_spells, (spell_t){last_us + 2000, last_us + 2300});
    CHECK_EQUAL(s_spells.seen, SPELLS_KEPT + 2);
    CHECK_EQUAL(spells_worst_us(&s_spells, last_us + 500, last_us + 600), 700);
    CHECK_EQUAL(spells_worst_us(&s_spells, last_us + 2299, INT64_MAX), 700);
    CHECK_EQUAL(spells_worst_us(&s_spells, last_us + 2301, INT64_MAX), 0);
    CHECK_EQUAL(spells_worst_us(&s_spells, last_us - 1000, last_us - 1), 100);
}

static void wait_us(int64_t us) {
    const struct timespec time = {.tv_nsec = us * 1000};
    nanosleep(&time, NULL);
}

static bool is_stopped(const char *stat_path) {
    char text[128] = "";
    int fd = open(stat_path, O_RDONLY);
    bool read_it = fd >= 0 && read(fd, text, sizeof text - 1) > 0;
    close(fd);
    return read_it && strstr(text, ") T ") != NULL;
}

/* All threads of this process, as when the machine under it does something else. */
static void stop_this_process_for(int64_t us) {
    pid_t parent = getpid();
    char stat_path[32];
    snprintf(stat_path, sizeof stat_path, "/proc/%d/stat", (int)parent);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        kill(parent, SIGSTOP);
        while (!is_stopped(stat_path)) {
            wait_us(100);
        }
        wait_us(us);
        kill(parent, SIGCONT);
        _exit(0);
    }
    int status = -1;
    while (waitpid(child, &status, 0) < 0) {
    }
    CHECK_EQUAL(status, 0);
}

/* An outage of the machine is seen on every core, whatever the threads' priority; before it nothing is made
 * up, and a new watch knows nothing of an old one. */
static void test_outage(void) {
    int64_t begin_us = esp_timer_get_time();
    bench_watch_begin();
    int64_t from_us = esp_timer_get_time();
    stop_this_process_for(OUTAGE_US);
    int64_t until_us = esp_timer_get_time();
    bench_watch_end(NULL);
    CHECK(until_us - from_us >= OUTAGE_US);
    for (BaseType_t core = 0; core < portNUM_PROCESSORS; core++) {
        CHECK(bench_watch_late_us(core, from_us, until_us) >= OUTAGE_US - UNSEEN_US);
    }
    CHECK(bench_watch_late_us(tskNO_AFFINITY, from_us, until_us) <= s_late_max_us);
    CHECK(s_late_count >= portNUM_PROCESSORS);
    CHECK_EQUAL(bench_watch_late_us(tskNO_AFFINITY, 0, begin_us), 0);

    bench_watch_begin();
    bench_watch_begin();
    bench_watch_end(NULL);
    CHECK_EQUAL(bench_watch_late_us(tskNO_AFFINITY, 0, until_us), 0);
}

typedef struct {
    TaskHandle_t waiter;
    int64_t from_us;
    int64_t until_us;
} stretch_t;

static void spin(stretch_t *stretch) {
    stretch->from_us = esp_timer_get_time();
    while (esp_timer_get_time() < stretch->from_us + OUTAGE_US) {
    }
    stretch->until_us = esp_timer_get_time();
}

static void spin_above_the_witness(void *argument) {
    stretch_t *stretch = argument;
    const struct sched_param above = {.sched_priority = ABOVE_ALL};
    CHECK_EQUAL(pthread_setschedparam(pthread_self(), SCHED_FIFO, &above), 0);
    spin(stretch);
    xTaskNotifyGive(stretch->waiter);
    vTaskDelete(NULL);
}

/* What outranks the board's threads on a core is seen on that core. */
static void test_higher_priority(BaseType_t core) {
    stretch_t stretch = {.waiter = xTaskGetCurrentTaskHandle()};
    bench_watch_begin();
    spawn(spin_above_the_witness, &stretch, 10, core);
    ulTaskNotifyTake(pdTRUE, portMAX_DELAY);
    bench_watch_end(NULL);
    CHECK(bench_watch_late_us(core, stretch.from_us, stretch.until_us) >= OUTAGE_US - UNSEEN_US);
}

static void spin_as_a_task(void *argument) {
    stretch_t *stretch = argument;
    vTaskSuspendAll();
    spin(stretch);
    xTaskResumeAll();
    xTaskNotifyGive(stretch->waiter);
    vTaskDelete(NULL);
}

/* What the board's own tasks do is no lateness of the host: in some of the stretches it was not late as long
 * as the task of the highest priority computed, scheduler suspended. Of one stretch nobody can say that here.
 */
static void test_own_tasks_do_not_count(void) {
    for (int i = 0; i < 20; i++) {
        stretch_t stretch = {.waiter = xTaskGetCurrentTaskHandle()};
        bench_watch_begin();
        spawn(spin_as_a_task, &stretch, configMAX_PRIORITIES - 1, 0);
        ulTaskNotifyTake(pdTRUE, portMAX_DELAY);
        bench_watch_end(NULL);
        if (bench_watch_late_us(0, stretch.from_us, stretch.until_us) < OUTAGE_US - UNSEEN_US) {
            return;
        }
    }
    CHECK(!"the witness waits for tasks");
}

void app_main(void) {
    vTaskPrioritySet(NULL, 20);
    test_overlap();
    test_overflow();
    test_outage();
    if (realtime()) {
        test_higher_priority(0);
        test_higher_priority(portNUM_PROCESSORS - 1);
        test_own_tasks_do_not_count();
    }
    exit(0);
}
