/* SPDX-License-Identifier: Apache-2.0 */
/* The sample buffer: one arena, there from before run() is called until its samples have arrived; filled in
 * place while the clock runs, sent afterwards.
 *
 * A row is one sample, a column one integer of it. Values are unsigned 32-bit; times are microseconds
 * since the run's t0, which is good for 71 minutes. t0 itself goes to the end line
 * (bench_environment_int(samples, "t0_us", t0)).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "esp_err.h"
#include "sdkconfig.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifdef CONFIG_HIL_ARENA_BYTES /* of a product's esp_hil */
enum { BENCH_ARENA_BYTES = CONFIG_HIL_ARENA_BYTES };
#else
enum { BENCH_ARENA_BYTES = 48 * 1024 };
#endif

typedef struct bench_samples bench_samples_t;

/* Rows that fit one burst: BENCH_ARENA_BYTES / (4 * columns). */
size_t bench_samples_capacity(const bench_samples_t *samples);

/* Make room for `rows` rows, all cells zero. The first `warmup_rows` of them are cold ones.
 *
 * Call it once at the start of a run and once more after each bench_samples_burst().
 * Returns ESP_ERR_NO_MEM if rows > bench_samples_capacity(), and the host is told so in a sentence where the
 * bench has none of its own; ESP_ERR_INVALID_ARG if warmup_rows > rows or if warm-up rows are asked for in a
 * later burst than the first.
 */
esp_err_t bench_samples_begin(bench_samples_t *samples, size_t rows, size_t warmup_rows);

/* Store one value. Any task may call it, also several at once as long as no two write the same cell.
 * Takes no lock and never prints. A cell outside the rows asked for is not written; the run then ends
 * with ESP_ERR_INVALID_SIZE. */
void bench_samples_set(bench_samples_t *samples, size_t row, size_t column, uint32_t value);

/* Send what is there as one transfer, wait until the host acknowledged it, empty the buffer.
 *
 * Call it between stretches of measuring, never within one: it prints. What is in the buffer when run()
 * returns is sent by the agent; do not call it for the last burst.
 * Returns ESP_ERR_INVALID_STATE when the host aborted the run: leave run() then.
 */
esp_err_t bench_samples_burst(bench_samples_t *samples);

/* Add `key=value` to the end line of the burst being filled (unit in the key). Call it from run()'s own
 * task, outside the measured stretch. Text is escaped. What does not fit (768 characters a burst)
 * ends the run with ESP_ERR_NO_MEM. */
void bench_environment_int(bench_samples_t *samples, const char *key, int64_t value);
void bench_environment_text(bench_samples_t *samples, const char *key, const char *value);

/* Add `stack_free_min_<task>_bytes`, the least free stack that a task of the bench ever had; on a host
 * `host_stack_…`, because it is no figure of a device. The agent's, Wi-Fi's and lwIP's are on every end line.
 */
void bench_environment_stack(bench_samples_t *samples, const char *task_name, uint32_t free_min_bytes);

/* Set the stretch that the CPU load on the end line is about (cpu_wall_us, cpu_busy_core<n>_us): without
 * these it is from bench_samples_begin() until run() returns or bench_samples_burst() is called, so
 * connecting before is not in it and cleaning up is. The last begin and the first end after it count, also
 * where bench_samples_begin() is called later. From any task. */
void bench_cpu_load_begin(void);
void bench_cpu_load_end(void);

/* Have the load counted in this burst on a chip, too, where that keeps the idle tasks awake: without this
 * there is none on its end line, as a bench of the scheduler must not be measured beside it. Before the
 * stretch begins. */
void bench_cpu_load_want(void);

/* Whose fault it is that nothing was measured. */
typedef enum {
    BENCH_OWNER_FIRMWARE,      /* what runs on the board; also where nothing else is said */
    BENCH_OWNER_CONFIGURATION, /* what it was told: parameters that contradict, something not provisioned */
    BENCH_OWNER_RIG,           /* what it needs from outside and is not there: the broker, the network */
} bench_owner_t;

/* Say why nothing can be measured, as a sentence without a full stop (up to 255 characters, printf's format);
 * the host quotes it. Returns `status`, for run() to return:
 *
 *     return bench_fail(samples, BENCH_OWNER_RIG, ESP_ERR_TIMEOUT, "no answer from %s", host);
 *
 * Call it from run()'s own task. It counts only if run() does not return ESP_OK. */
esp_err_t bench_fail(bench_samples_t *samples, bench_owner_t owner, esp_err_t status, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#ifdef __cplusplus
}
#endif
