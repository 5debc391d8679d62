/* SPDX-License-Identifier: Apache-2.0 */
#include "samples_private.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cpu_load.h"
#include "esp_heap_caps.h"
#include "port/port.h"
#include "wire.h"

enum { ARENA_CELLS = BENCH_ARENA_BYTES / sizeof(uint32_t) };

static uint32_t *s_arena; /* ARENA_CELLS of them, column after column, as it is packed */

static void set_fault(bench_samples_t *samples, esp_err_t fault) {
    int none = ESP_OK;
    atomic_compare_exchange_strong(&samples->fault, &none, fault);
}

void samples_reset(bench_samples_t *samples, size_t columns, samples_send_t send) {
    *samples = (bench_samples_t){.columns = columns, .burst = 1, .send = send};
    cpu_load_reset();
}

void samples_discard(bench_samples_t *samples) {
    samples->rows = 0;
    samples->warmup_rows = 0;
}

/* Internal memory: what is measured must not wait for a slower one, nor share its cache. */
esp_err_t samples_take_arena(bench_samples_t *samples) {
    const uint32_t caps = MALLOC_CAP_INTERNAL | MALLOC_CAP_8BIT;
    if (s_arena == NULL) {
        s_arena = heap_caps_malloc(BENCH_ARENA_BYTES, caps);
    }
    if (s_arena != NULL) {
        return ESP_OK;
    }
    return bench_fail(samples, BENCH_OWNER_CONFIGURATION, ESP_ERR_NO_MEM,
                      "the sample buffer of %u bytes does not fit the heap, whose largest free block has %u; "
                      "CONFIG_HIL_ARENA_BYTES makes it smaller",
                      (unsigned)BENCH_ARENA_BYTES, (unsigned)heap_caps_get_largest_free_block(caps));
}

void samples_drop_arena(void) {
    heap_caps_free(s_arena);
    s_arena = NULL;
}

size_t bench_samples_capacity(const bench_samples_t *samples) {
    return ARENA_CELLS / samples->columns;
}

static esp_err_t refuse_rows(bench_samples_t *samples, size_t rows) {
    if (samples->error[0] == '\0') {
        bench_fail(samples, BENCH_OWNER_CONFIGURATION, ESP_ERR_NO_MEM,
                   "%u rows of %u columns take %u bytes, and the sample buffer has %u "
                   "(CONFIG_HIL_ARENA_BYTES)",
                   (unsigned)rows, (unsigned)samples->columns,
                   (unsigned)(rows * samples->columns * sizeof(s_arena[0])), (unsigned)BENCH_ARENA_BYTES);
    }
    return ESP_ERR_NO_MEM;
}

esp_err_t bench_samples_begin(bench_samples_t *samples, size_t rows, size_t warmup_rows) {
    if (rows > bench_samples_capacity(samples)) {
        return refuse_rows(samples, rows);
    }
    if (samples_take_arena(samples) != ESP_OK) { /* it is there already in a run */
        return ESP_ERR_NO_MEM;
    }
    if (warmup_rows > rows || (warmup_rows > 0 && samples->burst > 1)) {
        return ESP_ERR_INVALID_ARG;
    }
    port_environment_reset();
    cpu_load_begin();
    samples->rows = rows;
    samples->warmup_rows = warmup_rows;
    memset(s_arena, 0, rows * samples->columns * sizeof(s_arena[0]));
    return ESP_OK;
}

void bench_samples_set(bench_samples_t *samples, size_t row, size_t column, uint32_t value) {
    if (row >= samples->rows || column >= samples->columns) {
        set_fault(samples, ESP_ERR_INVALID_SIZE);
        return;
    }
    s_arena[column * samples->rows + row] = value;
}

uint32_t samples_get(const bench_samples_t *samples, size_t row, size_t column) {
    assert(row < samples->rows && column < samples->columns);
    return s_arena[column * samples->rows + row];
}

esp_err_t bench_samples_burst(bench_samples_t *samples) {
    cpu_load_end();
    esp_err_t err = samples->send(samples);
    cpu_load_reset();
    samples_discard(samples);
    samples->environment_length = 0;
    samples->burst++;
    return err;
}

/* Keep what `line` holds after its head, unless it does not fit. */
static void keep_environment(bench_samples_t *samples, const wire_line_t *line) {
    size_t room = sizeof(samples->environment) - samples->environment_length;
    if (line->overflow || line->length >= room) {
        set_fault(samples, ESP_ERR_NO_MEM);
        return;
    }
    memcpy(samples->environment + samples->environment_length, line->text, line->length);
    samples->environment_length += line->length;
    samples->environment[samples->environment_length] = '\0';
}

void bench_environment_int(bench_samples_t *samples, const char *key, int64_t value) {
    char text[96];
    wire_line_t line = {.text = text, .size = sizeof(text)};
    wire_line_int(&line, key, value);
    keep_environment(samples, &line);
}

void bench_environment_text(bench_samples_t *samples, const char *key, const char *value) {
    char text[256];
    wire_line_t line = {.text = text, .size = sizeof(text)};
    wire_line_text(&line, key, value);
    keep_environment(samples, &line);
}

esp_err_t bench_fail(bench_samples_t *samples, bench_owner_t owner, esp_err_t status, const char *format,
                     ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(samples->error, sizeof(samples->error), format, arguments);
    va_end(arguments);
    samples->owner = owner;
    return status;
}

const char *samples_owner_name(bench_owner_t owner) {
    static const char *const names[] = {"firmware", "configuration", "rig"};
    return names[owner];
}
