/* SPDX-License-Identifier: Apache-2.0 */
#include "answer.h"

#include "run.h"
#include "runner.h"

void answer_ok(void) {
    reply_end(reply_current(), reply_ok(reply_current()));
}

int answer_error(const char *code, const char *key, const char *value) {
    wire_line_t *line = reply_error(reply_current(), code);
    if (key != NULL) {
        wire_line_text(line, key, value);
    }
    reply_end(reply_current(), line);
    return 1;
}

int answer_busy(void) {
    uint32_t held = runner_held_transfer(); /* before the record lock: a sender takes them in this order */
    wire_line_t *line = reply_error(reply_current(), "busy");
    wire_line_text(line, "state", runner_state_name());
    wire_line_int(line, "transfer", held);
    reply_end(reply_current(), line);
    return 1;
}

int answer_usage(const char *usage) {
    return answer_error("bad-argument", "usage", usage);
}

void write_benches(wire_line_t *line) {
    wire_line_key(line, "benches");
    for (size_t i = 0; run_bench_at(i) != NULL; i++) {
        wire_line_escaped(line, i > 0 ? "," : "");
        wire_line_escaped(line, run_bench_at(i)->bench->name);
    }
}

int answer_unknown_bench(void) {
    wire_line_t *line = reply_error(reply_current(), "unknown-bench");
    write_benches(line);
    reply_end(reply_current(), line);
    return 1;
}
