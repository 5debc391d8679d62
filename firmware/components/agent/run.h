/* SPDX-License-Identifier: Apache-2.0 */
/* A run: a bench and the values of its parameters. */
#pragma once

#include "agent/bench.h"
#include "agent/register.h"
#include "wire.h"

/* The table that the build makes from components/benches/<stem>.c. Others register themselves. */
extern const bench_entry_t bench_table[];
extern const size_t bench_table_length;

struct bench_run {
    const bench_entry_t *entry;
    int64_t values[BENCH_MAX_PARAMETERS];
};

/* One after the other, those of the table first; NULL behind the last. */
const bench_entry_t *run_bench_at(size_t index);
const bench_entry_t *run_find_bench(const char *name);

/* Set the defaults. */
void run_init(bench_run_t *run, const bench_entry_t *entry);

/* Set one parameter from `key=value` text. Returns the parameter, NULL for an unknown key; `*valid` says
 * whether the value was one of the allowed. */
const bench_parameter_t *run_set(bench_run_t *run, const char *key, const char *value, bool *valid);

/* Append what is allowed: `min..max`, or `a|b|c`. */
void run_write_allowed(wire_line_t *line, const bench_parameter_t *parameter);
/* Append a comma-separated list of the parameters' keys. */
void run_write_keys(wire_line_t *line, const bench_t *bench);
/* Append a parameter's value as text. */
void run_write_value(wire_line_t *line, const bench_parameter_t *parameter, int64_t value);
/* Append `key=value,…` of all parameters. */
void run_write_case(wire_line_t *line, const bench_run_t *run);
