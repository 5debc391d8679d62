/* SPDX-License-Identifier: Apache-2.0 */
/* `run trace`: the ring's events in the order of their times, the names in the environment. What is in the
 * ring stays there. */
#include "trace/bench.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "names.h"
#include "ring.h"
#include "trace/trace.h"

enum { COLUMN_TIME, COLUMN_CORE, COLUMN_EVENT, COLUMN_TASK, COLUMN_ARGUMENT };
enum {
    KEY_SIZE = 16,
    VALUE_SIZE = 48,
    ENVIRONMENT_SIZE = 700, /* of the 768 characters that a burst has */
    ESCAPED_SIZE = 3,       /* of a character that is sent as % and two digits */
    ENTRIES = NAMES_TASKS + NAMES_OBJECTS,
};

/* What is to be sent. Lives on the run task's stack. */
typedef struct {
    uint32_t first; /* number of the event that order[] counts from */
    uint32_t count;
    uint16_t order[TRACE_EVENTS]; /* the events that are there, by time */
    bool is_named[ENTRIES];       /* tasks first, then objects */
} dump_t;

static bool has_object(const ring_event_t *event) {
    return event->event == TRACE_WAITS || event->event == TRACE_TAKEN || event->event == TRACE_GIVEN;
}

static void note_names(dump_t *dump, const ring_event_t *event) {
    if (event->task != 0) {
        dump->is_named[event->task - 1] = true;
    }
    if (has_object(event) && event->argument != 0) {
        dump->is_named[NAMES_TASKS + event->argument - 1] = true;
    }
}

static uint32_t time_of(const dump_t *dump, uint32_t place) {
    ring_event_t event;
    (void)ring_read(dump->first + dump->order[place], &event);
    return event.time_us;
}

/* Numbers are given in the order of time but for writers that met: an event moves by few places. */
static void insert(dump_t *dump, uint32_t number, uint32_t time_us) {
    uint32_t place = dump->count++;
    while (place > 0 && (int32_t)(time_of(dump, place - 1) - time_us) > 0) { /* also where it wrapped */
        dump->order[place] = dump->order[place - 1];
        place--;
    }
    dump->order[place] = (uint16_t)(number - dump->first);
}

static void collect(dump_t *dump) {
    memset(dump, 0, sizeof *dump);
    dump->first = ring_first();
    for (uint32_t number = dump->first; number != ring_end(); number++) {
        ring_event_t event;
        if (ring_read(number, &event)) {
            note_names(dump, &event);
            insert(dump, number, event.time_us);
        }
    }
}

static void write_task(uint32_t number, char value[VALUE_SIZE]) {
    names_task_t task = names_task(number);
    for (char *c = task.name; *c != '\0'; c++) {
        *c = *c == ':' ? '_' : *c;
    }
    char core[12] = "-";
    if (task.core >= 0) {
        snprintf(core, sizeof core, "%" PRId32, task.core);
    }
    snprintf(value, VALUE_SIZE, "%s:%" PRIu32 ":%s", task.name, task.priority, core);
}

/* Returns how long it is at most when it is sent; 0 for an entry that is not sent. */
static size_t write_entry(const dump_t *dump, uint32_t entry, char key[KEY_SIZE], char value[VALUE_SIZE]) {
    bool is_task = entry < NAMES_TASKS;
    uint32_t number = is_task ? entry + 1 : entry - NAMES_TASKS + 1;
    const char *kind = is_task ? NULL : names_object_kind(number);
    if (!dump->is_named[entry] || (!is_task && kind == NULL)) {
        return 0;
    }
    snprintf(key, KEY_SIZE, is_task ? "task_%" PRIu32 : "object_%" PRIu32, number);
    if (is_task) {
        write_task(number, value);
        return strlen(key) + ESCAPED_SIZE * strlen(value) + 2;
    }
    snprintf(value, VALUE_SIZE, "%s", kind);
    return strlen(key) + strlen(value) + 2;
}

/* Add entries from `entry` on to a burst's environment, or only count them where there is none. Returns the
 * first one that does not fit. */
static uint32_t fill_environment(const dump_t *dump, uint32_t entry, bench_samples_t *samples) {
    char key[KEY_SIZE], value[VALUE_SIZE];
    for (size_t used = 0; entry < ENTRIES; entry++) {
        size_t size = write_entry(dump, entry, key, value);
        used += size;
        if (used > ENVIRONMENT_SIZE) {
            return entry;
        }
        if (size > 0 && samples != NULL) {
            bench_environment_text(samples, key, value);
        }
    }
    return ENTRIES;
}

static uint32_t count_bursts(const dump_t *dump) {
    uint32_t bursts = 1;
    for (uint32_t entry = fill_environment(dump, 0, NULL); entry < ENTRIES; bursts++) {
        entry = fill_environment(dump, entry, NULL);
    }
    return bursts;
}

static void set_row(bench_samples_t *samples, size_t row, const ring_event_t *event) {
    bench_samples_set(samples, row, COLUMN_TIME, event->time_us);
    bench_samples_set(samples, row, COLUMN_CORE, event->core);
    bench_samples_set(samples, row, COLUMN_EVENT, event->event);
    bench_samples_set(samples, row, COLUMN_TASK, event->task);
    bench_samples_set(samples, row, COLUMN_ARGUMENT, event->argument);
}

static esp_err_t fill_rows(const dump_t *dump, uint32_t from, uint32_t rows, bench_samples_t *samples) {
    esp_err_t err = bench_samples_begin(samples, rows, 0);
    for (uint32_t row = 0; err == ESP_OK && row < rows; row++) {
        ring_event_t event;
        (void)ring_read(dump->first + dump->order[from + row], &event);
        set_row(samples, row, &event);
    }
    return err;
}

/* All rows fit one burst; all names may not. */
static esp_err_t send(const dump_t *dump, bench_samples_t *samples) {
    uint32_t entry = 0, row = 0;
    esp_err_t err = ESP_OK;
    for (uint32_t left = count_bursts(dump); err == ESP_OK && left > 0; left--) {
        uint32_t rows = (dump->count - row) / left;
        err = fill_rows(dump, row, rows, samples);
        entry = fill_environment(dump, entry, samples);
        row += rows;
        if (err == ESP_OK && left > 1) {
            err = bench_samples_burst(samples);
        }
    }
    return err;
}

static esp_err_t run(const bench_run_t *bench_run, bench_samples_t *samples) {
    (void)bench_run;
    trace_stop();
    dump_t dump;
    collect(&dump);
    if (dump.count == 0) {
        return bench_fail(samples, BENCH_OWNER_CONFIGURATION, ESP_ERR_NOT_FOUND, "nothing was traced");
    }
    names_complete();
    return send(&dump, samples);
}

void trace_environment(bench_samples_t *samples) {
    uint32_t held = ring_end() - ring_first();
    uint32_t count = 0;
    for (uint32_t number = ring_first(); number != ring_end(); number++) {
        ring_event_t event;
        count += ring_read(number, &event) ? 1 : 0;
    }
    names_complete();
    bench_environment_int(samples, "trace_events_count", count);
    bench_environment_int(samples, "trace_frozen", ring_is_frozen());
    if (count != held) {
        bench_environment_int(samples, "trace_lost_count", held - count);
    }
}

static const char *const COLUMNS[] = {"time_us", "core", "event", "task", "argument"};

const bench_t trace_bench = {
    .name = "trace",
    .columns = COLUMNS,
    .column_count = sizeof(COLUMNS) / sizeof(COLUMNS[0]),
    .run = run,
};
