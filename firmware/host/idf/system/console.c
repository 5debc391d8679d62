/* SPDX-License-Identifier: Apache-2.0 */
/* Commands by name. Line editing, history and hints stay with whoever reads the line. */
#include "esp_console.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct command {
    esp_console_cmd_t cmd;
    char *name;
    struct command *next;
} command_t;

static pthread_mutex_t s_lock = PTHREAD_MUTEX_INITIALIZER;
static bool s_initialised;
static esp_console_config_t s_config;
static command_t *s_commands; /* by name */

/* A word ends at a space outside quotes; \" \\ and "\ " stand for the character; another character after a
 * backslash is dropped, as ESP-IDF does. An argument that does not fit argv is dropped with all after it. */
typedef struct {
    char *in;
    char *out;
} cursor_t;

static void copy_escaped(cursor_t *cursor) {
    char character = *cursor->in;
    if (character == '\0') {
        return;
    }
    cursor->in++;
    if (character == '\\' || character == '"' || character == ' ') {
        *cursor->out++ = character;
    }
}

/* Copies one word down and ends it; the line behind it may be overwritten, never what is still to be read. */
static char *split_word(cursor_t *cursor) {
    bool quoted = *cursor->in == '"';
    char end = quoted ? '"' : ' ';
    cursor->in += quoted ? 1 : 0;
    char *word = cursor->out;
    while (*cursor->in != '\0' && *cursor->in != end) {
        char character = *cursor->in++;
        if (character == '\\') {
            copy_escaped(cursor);
        } else {
            *cursor->out++ = character;
        }
    }
    cursor->in += *cursor->in != '\0' ? 1 : 0;
    *cursor->out++ = '\0';
    return word;
}

size_t esp_console_split_argv(char *line, char **argv, size_t argv_size) {
    cursor_t cursor = {.in = line, .out = line};
    size_t argc = 0;
    while (argc + 1 < argv_size) {
        cursor.in += strspn(cursor.in, " ");
        if (*cursor.in == '\0') {
            break;
        }
        argv[argc++] = split_word(&cursor);
    }
    argv[argc] = NULL;
    return argc;
}

static void set_initialised(bool initialised) {
    pthread_mutex_lock(&s_lock);
    s_initialised = initialised;
    pthread_mutex_unlock(&s_lock);
}

static bool is_initialised(void) {
    pthread_mutex_lock(&s_lock);
    bool initialised = s_initialised;
    pthread_mutex_unlock(&s_lock);
    return initialised;
}

esp_err_t esp_console_init(const esp_console_config_t *config) {
    if (config == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    if (is_initialised()) {
        return ESP_ERR_INVALID_STATE;
    }
    s_config = *config;
    if (s_config.max_cmdline_args == 0) {
        s_config.max_cmdline_args = 32;
    }
    set_initialised(true);
    return ESP_OK;
}

static command_t **find(const char *name, size_t length) {
    command_t **link = &s_commands;
    while (*link != NULL && (strncmp((*link)->name, name, length) != 0 || (*link)->name[length] != '\0')) {
        link = &(*link)->next;
    }
    return link;
}

/* In the lock. */
static bool remove_command(const char *name) {
    command_t **link = find(name, strlen(name));
    command_t *command = *link;
    if (command == NULL) {
        return false;
    }
    *link = command->next;
    free(command->name);
    free(command);
    return true;
}

esp_err_t esp_console_deinit(void) {
    if (!is_initialised()) {
        return ESP_ERR_INVALID_STATE;
    }
    pthread_mutex_lock(&s_lock);
    while (s_commands != NULL) {
        remove_command(s_commands->name);
    }
    pthread_mutex_unlock(&s_lock);
    set_initialised(false);
    return ESP_OK;
}

static void insert_command(command_t *command) {
    command_t **link = &s_commands;
    while (*link != NULL && strcmp((*link)->name, command->name) < 0) {
        link = &(*link)->next;
    }
    command->next = *link;
    *link = command;
}

static bool registrable(const esp_console_cmd_t *cmd) {
    return cmd != NULL && cmd->command != NULL && strchr(cmd->command, ' ') == NULL &&
           (cmd->func == NULL) != (cmd->func_w_context == NULL);
}

/* A command of the same name is replaced. */
esp_err_t esp_console_cmd_register(const esp_console_cmd_t *cmd) {
    if (!registrable(cmd)) {
        return ESP_ERR_INVALID_ARG;
    }
    command_t *command = calloc(1, sizeof *command);
    char *name = strdup(cmd->command);
    if (command == NULL || name == NULL) {
        free(command);
        free(name);
        return ESP_ERR_NO_MEM;
    }
    command->cmd = *cmd;
    command->name = name;
    pthread_mutex_lock(&s_lock);
    remove_command(name);
    insert_command(command);
    pthread_mutex_unlock(&s_lock);
    return ESP_OK;
}

esp_err_t esp_console_cmd_deregister(const char *cmd_name) {
    pthread_mutex_lock(&s_lock);
    bool removed = remove_command(cmd_name);
    pthread_mutex_unlock(&s_lock);
    return removed ? ESP_OK : ESP_ERR_INVALID_ARG;
}

static bool copy_command(const char *name, esp_console_cmd_t *cmd) {
    pthread_mutex_lock(&s_lock);
    const command_t *command = *find(name, strlen(name));
    if (command != NULL) {
        *cmd = command->cmd;
    }
    pthread_mutex_unlock(&s_lock);
    return command != NULL;
}

static esp_err_t run_split(char *line, char **argv, int *cmd_ret) {
    size_t argc = esp_console_split_argv(line, argv, s_config.max_cmdline_args);
    esp_console_cmd_t cmd;
    if (argc == 0) {
        return ESP_ERR_INVALID_ARG;
    }
    if (!copy_command(argv[0], &cmd)) {
        return ESP_ERR_NOT_FOUND;
    }
    *cmd_ret =
        cmd.func != NULL ? cmd.func((int)argc, argv) : cmd.func_w_context(cmd.context, (int)argc, argv);
    return ESP_OK;
}

esp_err_t esp_console_run(const char *cmdline, int *cmd_ret) {
    if (!is_initialised()) {
        return ESP_ERR_INVALID_STATE;
    }
    char *line = strdup(cmdline);
    char **argv = calloc(s_config.max_cmdline_args, sizeof *argv);
    esp_err_t result = line != NULL && argv != NULL ? run_split(line, argv, cmd_ret) : ESP_ERR_NO_MEM;
    free(argv);
    free(line);
    return result;
}

static int print_help(int argc, char **argv) {
    (void)argc;
    (void)argv;
    pthread_mutex_lock(&s_lock);
    for (const command_t *command = s_commands; command != NULL; command = command->next) {
        printf("%s %s\n  %s\n\n", command->name, command->cmd.hint != NULL ? command->cmd.hint : "",
               command->cmd.help != NULL ? command->cmd.help : "");
    }
    pthread_mutex_unlock(&s_lock);
    return 0;
}

esp_err_t esp_console_register_help_command(void) {
    const esp_console_cmd_t help = {
        .command = "help", .help = "Print the list of registered commands", .func = print_help};
    return esp_console_cmd_register(&help);
}

esp_err_t esp_console_deregister_help_command(void) {
    return esp_console_cmd_deregister("help");
}
