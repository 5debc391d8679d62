/* SPDX-License-Identifier: Apache-2.0 */
/* What a benchmark is. A file components/benches/<stem>.c defines `const bench_t bench_<stem>`; the build
 * makes the table of benches from the file names, so the file is the registration.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "esp_err.h"
#include "provision.h" /* beside this one, as below: a product finds them by esp_hil.h alone */
#include "samples.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    BENCH_INT,    /* def, min, max */
    BENCH_CHOICE, /* choices; def is the index of the default */
} bench_type_t;

typedef struct {
    const char *key;
    bench_type_t type;
    int64_t def;
    int64_t min;
    int64_t max;
    const char *const *choices; /* ends with NULL */
} bench_parameter_t;

enum { BENCH_MAX_PARAMETERS = 32, BENCH_MAX_COLUMNS = 16 };

/* The run in progress: its bench and the values of its parameters. */
typedef struct bench_run bench_run_t;

typedef struct bench bench_t;

struct bench {
    const char *name; /* equals the file's stem */
    const bench_parameter_t *parameters;
    size_t parameter_count; /* <= BENCH_MAX_PARAMETERS */
    const char *const *columns;
    size_t column_count; /* 1..BENCH_MAX_COLUMNS, names with units */
    const char *clock;   /* the clock that the columns were read from; NULL means "esp_timer" */

    /* Measure and fill `samples`. Runs in the agent's run task (priority AGENT_RUN_PRIORITY, no affinity).
     * A return other than ESP_OK is the run's status; no sample of it is sent then, and bench_fail() says
     * why. Must come back soon after bench_aborted() turns true. Clean up (tasks, clients) before coming
     * back. */
    esp_err_t (*run)(const bench_run_t *run, bench_samples_t *samples);
};

#ifdef CONFIG_HIL_ARENA_BYTES /* of a product's esp_hil */
enum {
    AGENT_RUN_PRIORITY = CONFIG_HIL_RUN_PRIORITY,
    AGENT_RUN_STACK_BYTES = CONFIG_HIL_RUN_STACK_BYTES,
};
#else
enum {
    AGENT_RUN_PRIORITY = 5,
    AGENT_RUN_STACK_BYTES = 8192,
};
#endif

/* Value of a parameter; of a choice, its index. An unknown key is a defect of the bench: it aborts. */
int64_t bench_param_int(const bench_run_t *run, const char *key);

/* Text of a choice. For an integer parameter, or an unknown key, it aborts. */
const char *bench_param_text(const bench_run_t *run, const char *key);

/* What the board was told (agent/provision.h). Does not change while a bench runs. */
const agent_provision_t *bench_provision(const bench_run_t *run);

/* Microseconds since 1970 in UTC, by the clock that the host has set. It may be set again: only esp_timer is
 * monotonic. */
int64_t bench_wall_clock_us(void);

/* Tell the host something while the run goes on, as `key=value` fields in printf's format:
 *
 *     bench_note(run, "ready", "port=%u", port);
 *
 * What acts on it is the host's peer of the bench (`peer:` in its thresholds file). It prints, so call it
 * from run()'s own task, and not inside a measured stretch that printing would disturb. A line may be lost:
 * what the run depends on is told again, once a second, until it has happened. `kind` is [a-z][a-z0-9_-]*, a
 * key [A-Za-z][A-Za-z0-9_]*. Fields are separated by blanks, which a value therefore cannot hold; all else in
 * it is escaped. Another kind or key, a word without `=`, or more than 200 characters together, is a defect
 * of the bench: it aborts. */
void bench_note(const bench_run_t *run, const char *kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* True once the host asked to abort. Poll it at least every 100 ms. */
bool bench_aborted(const bench_run_t *run);

#ifdef __cplusplus
}
#endif
