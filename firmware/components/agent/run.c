/* SPDX-License-Identifier: Apache-2.0 */
#include "run.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "esp_log.h"

static const char *TAG = "bench";

/* The section's bounds: of the linker where it has the section's name, of a linker script that ESP-IDF
 * generates (bench_section.lf) where it lies within another one. Nothing registered, no bounds. */
extern const bench_entry_t *const __start_hil_benches[] __attribute__((weak));
extern const bench_entry_t *const __stop_hil_benches[] __attribute__((weak));
extern const bench_entry_t *const _hil_benches_start[] __attribute__((weak));
extern const bench_entry_t *const _hil_benches_end[] __attribute__((weak));

static const bench_entry_t *registered_at(size_t index) {
    const size_t orphans = (size_t)(__stop_hil_benches - __start_hil_benches);
    const size_t placed = (size_t)(_hil_benches_end - _hil_benches_start);
    if (index < orphans) {
        return __start_hil_benches[index];
    }
    return index - orphans < placed ? _hil_benches_start[index - orphans] : NULL;
}

const bench_entry_t *run_bench_at(size_t index) {
    return index < bench_table_length ? &bench_table[index] : registered_at(index - bench_table_length);
}

const bench_entry_t *run_find_bench(const char *name) {
    const bench_entry_t *entry = NULL;
    for (size_t i = 0; (entry = run_bench_at(i)) != NULL; i++) {
        if (strcmp(entry->bench->name, name) == 0) {
            return entry;
        }
    }
    return NULL;
}

void run_init(bench_run_t *run, const bench_entry_t *entry) {
    *run = (bench_run_t){.entry = entry};
    for (size_t i = 0; i < entry->bench->parameter_count; i++) {
        run->values[i] = entry->bench->parameters[i].def;
    }
}

/* Index of a parameter, or parameter_count. */
static size_t find_parameter(const bench_t *bench, const char *key) {
    size_t i = 0;
    while (i < bench->parameter_count && strcmp(bench->parameters[i].key, key) != 0) {
        i++;
    }
    return i;
}

static bool parse_choice(const bench_parameter_t *parameter, const char *text, int64_t *value) {
    for (int64_t i = 0; parameter->choices[i] != NULL; i++) {
        if (strcmp(parameter->choices[i], text) == 0) {
            *value = i;
            return true;
        }
    }
    return false;
}

static bool parse_value(const bench_parameter_t *parameter, const char *text, int64_t *value) {
    if (parameter->type == BENCH_CHOICE) {
        return parse_choice(parameter, text, value);
    }
    return wire_parse_int(text, value) && *value >= parameter->min && *value <= parameter->max;
}

const bench_parameter_t *run_set(bench_run_t *run, const char *key, const char *value, bool *valid) {
    const bench_t *bench = run->entry->bench;
    size_t index = find_parameter(bench, key);
    if (index == bench->parameter_count) {
        return NULL;
    }
    int64_t parsed = 0;
    *valid = parse_value(&bench->parameters[index], value, &parsed);
    if (*valid) {
        run->values[index] = parsed;
    }
    return &bench->parameters[index];
}

static void write_number(wire_line_t *line, int64_t value) {
    char text[24];
    snprintf(text, sizeof(text), "%" PRId64, value);
    wire_line_escaped(line, text);
}

void run_write_allowed(wire_line_t *line, const bench_parameter_t *parameter) {
    if (parameter->type == BENCH_INT) {
        write_number(line, parameter->min);
        wire_line_escaped(line, "..");
        write_number(line, parameter->max);
        return;
    }
    for (size_t i = 0; parameter->choices[i] != NULL; i++) {
        wire_line_escaped(line, i > 0 ? "|" : "");
        wire_line_escaped(line, parameter->choices[i]);
    }
}

void run_write_keys(wire_line_t *line, const bench_t *bench) {
    for (size_t i = 0; i < bench->parameter_count; i++) {
        wire_line_escaped(line, i > 0 ? "," : "");
        wire_line_escaped(line, bench->parameters[i].key);
    }
}

void run_write_value(wire_line_t *line, const bench_parameter_t *parameter, int64_t value) {
    if (parameter->type == BENCH_INT) {
        write_number(line, value);
    } else {
        wire_line_escaped(line, parameter->choices[value]);
    }
}

void run_write_case(wire_line_t *line, const bench_run_t *run) {
    const bench_t *bench = run->entry->bench;
    for (size_t i = 0; i < bench->parameter_count; i++) {
        wire_line_escaped(line, i > 0 ? "," : "");
        wire_line_escaped(line, bench->parameters[i].key);
        wire_line_escaped(line, "=");
        run_write_value(line, &bench->parameters[i], run->values[i]);
    }
}

static size_t require_parameter(const bench_run_t *run, const char *key) {
    size_t index = find_parameter(run->entry->bench, key);
    if (index == run->entry->bench->parameter_count) {
        ESP_LOGE(TAG, "%s has no parameter %s", run->entry->bench->name, key);
        abort();
    }
    return index;
}

int64_t bench_param_int(const bench_run_t *run, const char *key) {
    return run->values[require_parameter(run, key)];
}

const char *bench_param_text(const bench_run_t *run, const char *key) {
    size_t index = require_parameter(run, key);
    const bench_parameter_t *parameter = &run->entry->bench->parameters[index];
    if (parameter->type != BENCH_CHOICE) {
        ESP_LOGE(TAG, "%s of %s is no choice", key, run->entry->bench->name);
        abort();
    }
    return parameter->choices[run->values[index]];
}
