/* SPDX-License-Identifier: Apache-2.0 */
/* Verbs of a measurement: run, ack, resend, abort. */
#include <string.h>

#include "answer.h"
#include "pack.h"
#include "port/port.h"
#include "runner.h"
#include "trace/bench.h"

/* What can be run and is no bench. It measures nothing, so there is no ruler. */
static const bench_entry_t BUILT_IN = {&trace_bench, "none"};

static const bench_entry_t *find(const char *name) {
    return strcmp(name, BUILT_IN.bench->name) == 0 ? &BUILT_IN : run_find_bench(name);
}

static int answer_unknown_parameter(const bench_t *bench) {
    wire_line_t *line = reply_error(reply_current(), "bad-parameter");
    wire_line_text(line, "reason", "unknown-key");
    wire_line_key(line, "allowed");
    run_write_keys(line, bench);
    reply_end(reply_current(), line);
    return 1;
}

static int answer_bad_value(const bench_parameter_t *parameter) {
    wire_line_t *line = reply_error(reply_current(), "bad-parameter");
    wire_line_text(line, "key", parameter->key);
    wire_line_key(line, "allowed");
    run_write_allowed(line, parameter);
    reply_end(reply_current(), line);
    return 1;
}

/* Take one `key=value` argument. Returns 0, or answers the error. `given` tells keys that come twice. */
static int take_parameter(bench_run_t *run, char *argument, uint32_t *given) {
    const bench_t *bench = run->entry->bench;
    char *equals = strchr(argument, '=');
    if (equals == NULL) {
        return answer_usage("run <bench> [key=value …]");
    }
    *equals = '\0';
    bool valid = false;
    const bench_parameter_t *parameter = run_set(run, argument, equals + 1, &valid);
    if (parameter == NULL) {
        return answer_unknown_parameter(bench);
    }
    uint32_t bit = 1U << (parameter - bench->parameters);
    if (!valid || (*given & bit) != 0) {
        return answer_bad_value(parameter);
    }
    *given |= bit;
    return 0;
}

int do_run(int argc, char **argv) {
    static bench_run_t run;
    uint32_t given = 0;
    const bench_entry_t *entry = argc >= 2 ? find(argv[1]) : NULL;
    if (entry == NULL) {
        return answer_unknown_bench();
    }
    run_init(&run, entry);
    for (int i = 2; i < argc; i++) {
        if (take_parameter(&run, argv[i], &given) != 0) {
            return 1;
        }
    }
    if (!runner_is_idle()) {
        return answer_busy();
    }
    wire_line_t *line = reply_ok(reply_current());
    wire_line_int(line, "transfer", runner_next_transfer());
    reply_end(reply_current(), line);
    port_console_drain(); /* not a bit moves on the line once the clock runs */
    runner_run(&run);
    return 0;
}

static bool parse_transfer(const char *text, uint32_t *transfer) {
    int64_t value = 0;
    bool valid = wire_parse_int(text, &value) && value > 0 && value <= UINT32_MAX;
    *transfer = valid ? (uint32_t)value : 0;
    return valid;
}

int do_ack(int argc, char **argv) {
    uint32_t transfer = 0;
    if (argc != 2 || !parse_transfer(argv[1], &transfer)) {
        return answer_usage("ack <transfer>");
    }
    if (!runner_acknowledge(transfer)) {
        return answer_error("no-transfer", "state", runner_state_name());
    }
    answer_ok();
    return 0;
}

int do_resend(int argc, char **argv) {
    static const char usage[] = "resend <transfer> [block …]";
    uint32_t transfer = 0;
    uint64_t blocks = 0;
    if (argc < 2 || !parse_transfer(argv[1], &transfer)) {
        return answer_usage(usage);
    }
    for (int i = 2; i < argc; i++) {
        int64_t block = 0;
        if (!wire_parse_int(argv[i], &block) || block < 0 || block >= PACK_MAX_BLOCKS) {
            return answer_usage(usage);
        }
        blocks |= 1ULL << block;
    }
    switch (runner_resend(transfer, blocks, answer_ok)) {
    case RUNNER_NO_TRANSFER:
        return answer_error("no-transfer", "state", runner_state_name());
    case RUNNER_NO_BLOCK:
        return answer_error("no-block", NULL, NULL);
    default:
        return 0;
    }
}

int do_abort(int argc, char **argv) {
    (void)argv;
    if (argc != 1) {
        return answer_usage("abort");
    }
    runner_abort();
    wire_line_t *line = reply_ok(reply_current());
    wire_line_text(line, "state", runner_state_name());
    reply_end(reply_current(), line);
    return 0;
}
