/* SPDX-License-Identifier: Apache-2.0 */
#include "commands.h"

#include <stdio.h>
#include <string.h>

#include "agent/agent.h"
#include "answer.h"
#include "environment.h"
#include "esp_console.h"
#include "esp_system.h"
#include "identity.h"
#include "port/port.h"
#include "reply.h"
#include "runner.h"

enum { MAX_ARGUMENTS = BENCH_MAX_PARAMETERS + 4 };

typedef struct {
    const char *command;
    const char *hint; /* of its arguments, NULL where it has none */
    const char *help;
    int (*func)(int argc, char **argv);
} command_t;

static int do_hello(int argc, char **argv) {
    int64_t version = WIRE_PROTOCOL_MAX;
    if (argc > 2 || (argc == 2 && !wire_parse_int(argv[1], &version))) {
        return answer_usage("hello [version]");
    }
    if (version < WIRE_PROTOCOL_MIN || version > WIRE_PROTOCOL_MAX) {
        return answer_error("unsupported-version", NULL, NULL);
    }
    identity_say_hello();
    answer_ok();
    return 0;
}

static int do_info(int argc, char **argv) {
    (void)argv;
    if (argc != 1) {
        return answer_usage("info");
    }
    uint32_t held = runner_held_transfer();
    wire_line_t *line = reply_ok(reply_current());
    wire_line_text(line, "state", runner_state_name());
    wire_line_int(line, "transfer", held);
    environment_write(line);
    reply_end(reply_current(), line);
    return 0;
}

static void write_parameter(wire_line_t *line, const bench_parameter_t *parameter) {
    wire_line_escaped(line, parameter->key);
    wire_line_escaped(line, ":");
    run_write_value(line, parameter, parameter->def);
    wire_line_escaped(line, ":");
    run_write_allowed(line, parameter);
}

static void list_bench(const bench_entry_t *entry) {
    wire_line_t *line = reply_ok(reply_current());
    wire_line_text(line, "bench", entry->bench->name);
    wire_line_text(line, "ruler_hash", entry->ruler_hash);
    wire_line_key(line, "columns");
    for (size_t i = 0; i < entry->bench->column_count; i++) {
        wire_line_escaped(line, i > 0 ? "," : "");
        wire_line_escaped(line, entry->bench->columns[i]);
    }
    wire_line_key(line, "parameters");
    for (size_t i = 0; i < entry->bench->parameter_count; i++) {
        wire_line_escaped(line, i > 0 ? "," : "");
        write_parameter(line, &entry->bench->parameters[i]);
    }
    reply_end(reply_current(), line);
}

static int do_list(int argc, char **argv) {
    if (argc > 2) {
        return answer_usage("list [bench]");
    }
    if (argc == 2) {
        const bench_entry_t *entry = run_find_bench(argv[1]);
        if (entry == NULL) {
            return answer_unknown_bench();
        }
        list_bench(entry);
        return 0;
    }
    wire_line_t *line = reply_ok(reply_current());
    write_benches(line);
    reply_end(reply_current(), line);
    return 0;
}

static int do_restart(int argc, char **argv) {
    (void)argv;
    if (argc != 1) {
        return answer_usage("restart");
    }
    answer_ok();
    port_console_drain();
    esp_restart();
}

static int do_help(int argc, char **argv);

static const command_t COMMANDS[] = {
    {.command = "help", .help = "What can be typed here", .func = do_help},
    {.command = "hello", .hint = "[version]", .help = "Who is there", .func = do_hello},
    {.command = "info", .help = "State and environment now", .func = do_info},
    {.command = "list", .hint = "[bench]", .help = "Benches; columns and parameters of one", .func = do_list},
    {.command = "provision",
     .hint = "<field> <offset> <base64>",
     .help = "One piece of a credential, the time, the broker",
     .func = do_provision},
    {.command = "provision-end",
     .hint = "<field> <length> <crc32>",
     .help = "Check the field and use it",
     .func = do_provision_end},
    {.command = "net", .hint = "up [timeout_ms]", .help = "Bring the network up", .func = do_net},
    {.command = "run", .hint = "<bench> [key=value ...]", .help = "Measure one case", .func = do_run},
    {.command = "ack", .hint = "<transfer>", .help = "The samples have arrived", .func = do_ack},
    {.command = "resend",
     .hint = "<transfer> [block ...]",
     .help = "Repeat begin and end, or the blocks",
     .func = do_resend},
    {.command = "abort", .help = "End the run, drop its samples", .func = do_abort},
    {.command = "restart", .help = "Restart the board", .func = do_restart},
};
enum { COMMAND_COUNT = sizeof(COMMANDS) / sizeof(COMMANDS[0]) };

static int do_help(int argc, char **argv) {
    (void)argc;
    (void)argv;
    char text[96];
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        const char *hint = COMMANDS[i].hint != NULL ? COMMANDS[i].hint : "";
        int length =
            snprintf(text, sizeof(text), "%-14s%-27s%s\n", COMMANDS[i].command, hint, COMMANDS[i].help);
        port_console_write(text, (size_t)length);
    }
    answer_ok();
    return 0;
}

static const command_t *find_command(const char *name) {
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(COMMANDS[i].command, name) == 0) {
            return &COMMANDS[i];
        }
    }
    return NULL;
}

/* esp_console's registry may be the program's own, with its own verbs and a shorter line: only its parser is
 * used. */
static void dispatch(const wire_command_t *command) {
    char *argv[MAX_ARGUMENTS + 1]; /* one more than allowed, to tell a line with too many; and NULL */
    if (!reply_start(command)) {
        return;
    }
    if (agent_config()->confirm_image) {
        port_confirm_image(); /* somebody talks to it, so another image can be put in its place */
    }
    size_t argc = esp_console_split_argv(command->text, argv, MAX_ARGUMENTS + 1);
    const command_t *found = argc > 0 ? find_command(argv[0]) : NULL;
    if (found != NULL) {
        found->func((int)argc, argv);
    } else {
        /* The verb is not echoed: it may be a piece of a credential whose line lost its head. */
        answer_error("unknown-command", NULL, NULL);
    }
}

void commands_execute(char *line) {
    wire_command_t command;
    switch (wire_command_parse(line, &command)) {
    case WIRE_COMMAND_OK:
        dispatch(&command);
        break;
    case WIRE_COMMAND_BAD_CRC:
        reply_to_damaged("bad-crc");
        break;
    case WIRE_COMMAND_BAD_LINE:
        reply_to_damaged("bad-line");
        break;
    case WIRE_COMMAND_EMPTY:
        break;
    }
}
