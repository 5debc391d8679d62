/* SPDX-License-Identifier: Apache-2.0 */
/* note.c: what a bench tells its peer arrives as it was meant, and what cannot is a defect that shows. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/bench.h"
#include "expect.h"
#include "record.h"
#include "runner.h"
#include "wire.h"

static char s_buffer[WIRE_LINE_SIZE];
static wire_line_t s_line;

wire_line_t *record_begin(char kind) {
    wire_line_start(&s_line, s_buffer, sizeof(s_buffer), 9, kind);
    return &s_line;
}

void record_end(wire_line_t *line) {
    EXPECT(wire_line_finish(line));
}

uint32_t runner_next_transfer(void) {
    return 7;
}

static void expect_note(const char *wanted) {
    EXPECT(strlen(s_buffer) > strlen(wanted) && s_buffer[strlen(wanted)] == ' ');
    s_buffer[strlen(wanted)] = '\0';
    EXPECT_TEXT(s_buffer, wanted);
}

static void a_note_carries_the_runs_transfer_and_its_fields(void) {
    bench_note(NULL, "ready", "port=%u side=%s", 5001U, "client");
    expect_note("@hil 1 9 N 7 ready port=5001 side=client");
    bench_note(NULL, "done", "%s", "");
    expect_note("@hil 1 9 N 7 done");
}

/* What a value holds cannot forge a field, a marker or a checksum. */
static void values_are_escaped(void) {
    bench_note(NULL, "ready", "url=%s empty= port=1", "http://a/?b=c%20*@#\n");
    expect_note("@hil 1 9 N 7 ready url=http://a/?b=c%2520%2A%40%23%0A empty= port=1");
}

static void two_hundred_characters_fit(void) {
    char value[201] = {0};
    memset(value, '%', 198); /* each becomes three */
    bench_note(NULL, "ready", "v=%s", value);
    EXPECT(strlen(s_buffer) == strlen("@hil 1 9 N 7 ready v=") + 3 * 198 + strlen(" *01234567\n"));
}

static void expect_abort(const char *kind, const char *fields) {
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        fclose(stderr);
        signal(SIGABRT, SIG_DFL);
        bench_note(NULL, kind, "%s", fields);
        _exit(EXIT_SUCCESS);
    }
    int status = 0;
    EXPECT(child > 0 && waitpid(child, &status, 0) == child);
    EXPECT(!WIFEXITED(status) || WEXITSTATUS(status) != EXIT_SUCCESS);
}

static void a_note_that_cannot_be_read_aborts(void) {
    char value[204] = {0};
    memset(value, 'x', 201);
    value[1] = '=';
    expect_abort("ready", "port");
    expect_abort("ready", "=5001");
    expect_abort("ready", "text=two words");
    expect_abort("ready", value);
}

/* hil/wire takes these and no others. */
static void kinds_and_keys_are_the_hosts(void) {
    bench_note(NULL, "going-2_off", "A_z09=1");
    expect_note("@hil 1 9 N 7 going-2_off A_z09=1");
    static const char *const kinds[] = {"", "Ready", "2nd", "-", "_", "rEady", "re.ady", "a=b"};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        expect_abort(kinds[i], "a=1");
    }
    static const char *const fields[] = {"1a=1", "_a=1", "a-b=1", "a.b=1", "a=1 b\t=1"};
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        expect_abort("ready", fields[i]);
    }
}

int main(void) {
    a_note_carries_the_runs_transfer_and_its_fields();
    values_are_escaped();
    two_hundred_characters_fit();
    a_note_that_cannot_be_read_aborts();
    kinds_and_keys_are_the_hosts();
    return 0;
}
