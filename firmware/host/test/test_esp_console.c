/* SPDX-License-Identifier: Apache-2.0 */
/* Console commands: how a line becomes arguments, and what running it answers. */
#include "esp_console.h"

#include "idf_check.h"

static int s_argc;
static char s_last[64];

static void check_split(const char *line, size_t count, const char *const *words) {
    char copy[128];
    char *argv[8];
    snprintf(copy, sizeof copy, "%s", line);
    CHECK_EQUAL(esp_console_split_argv(copy, argv, 8), count);
    for (size_t i = 0; i < count; i++) {
        CHECK(strcmp(argv[i], words[i]) == 0);
    }
    CHECK(argv[count] == NULL);
}

/* Words end at spaces; quotes keep them; a backslash takes space, quote and itself literally. */
static void test_split(void) {
    check_split("run publish qos=1", 3, (const char *const[]){"run", "publish", "qos=1"});
    check_split("  a   b ", 2, (const char *const[]){"a", "b"});
    check_split("say \"two words\" x", 3, (const char *const[]){"say", "two words", "x"});
    check_split("a\\ b \\\"c \\\\", 3, (const char *const[]){"a b", "\"c", "\\"});
    check_split("\"open end", 1, (const char *const[]){"open end"});
    check_split("\"\" x", 2, (const char *const[]){"", "x"});
    check_split("", 0, NULL);
}

/* What does not fit argv is dropped, and the list still ends in NULL. */
static void test_split_is_bounded(void) {
    char line[] = "a b c d";
    char *argv[3];
    CHECK_EQUAL(esp_console_split_argv(line, argv, 3), 2);
    CHECK(strcmp(argv[1], "b") == 0 && argv[2] == NULL);
}

static int remember(int argc, char **argv) {
    s_argc = argc;
    snprintf(s_last, sizeof s_last, "%s", argv[argc - 1]);
    return 42;
}

static int add_to_context(void *context, int argc, char **argv) {
    (void)argv;
    *(int *)context += argc;
    return 0;
}

/* A registered command runs with its arguments; an unknown one and an empty line are told apart. */
static void test_run(void) {
    static int sum = 10;
    int result = 0;
    const esp_console_config_t config = ESP_CONSOLE_CONFIG_DEFAULT();
    const esp_console_cmd_t plain = {.command = "remember", .help = "keeps a word", .func = remember};
    const esp_console_cmd_t with_context = {
        .command = "add", .func_w_context = add_to_context, .context = &sum};
    const esp_console_cmd_t neither = {.command = "neither"};
    CHECK_EQUAL(esp_console_run("remember", &result), ESP_ERR_INVALID_STATE);
    CHECK_EQUAL(esp_console_init(&config), ESP_OK);
    CHECK_EQUAL(esp_console_init(&config), ESP_ERR_INVALID_STATE);
    CHECK_EQUAL(esp_console_cmd_register(&plain), ESP_OK);
    CHECK_EQUAL(esp_console_cmd_register(&with_context), ESP_OK);
    CHECK_EQUAL(esp_console_cmd_register(&neither), ESP_ERR_INVALID_ARG);
    CHECK_EQUAL(esp_console_run("remember this \"and that\"", &result), ESP_OK);
    CHECK_EQUAL(result, 42);
    CHECK_EQUAL(s_argc, 3);
    CHECK(strcmp(s_last, "and that") == 0);
    CHECK_EQUAL(esp_console_run("add 1 2", &result), ESP_OK);
    CHECK_EQUAL(sum, 13);
    CHECK_EQUAL(esp_console_run("rem", &result), ESP_ERR_NOT_FOUND);
    CHECK_EQUAL(esp_console_run("   ", &result), ESP_ERR_INVALID_ARG);
    CHECK_EQUAL(esp_console_cmd_deregister("add"), ESP_OK);
    CHECK_EQUAL(esp_console_run("add 1", &result), ESP_ERR_NOT_FOUND);
}

/* "help" is a command like the others. */
static void test_help(void) {
    int result = -1;
    CHECK_EQUAL(esp_console_register_help_command(), ESP_OK);
    CHECK_EQUAL(esp_console_run("help", &result), ESP_OK);
    CHECK_EQUAL(result, 0);
    CHECK_EQUAL(esp_console_deinit(), ESP_OK);
}

int main(void) {
    test_split();
    test_split_is_bounded();
    test_run();
    test_help();
    return 0;
}
