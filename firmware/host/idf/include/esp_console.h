/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "esp_err.h"
#include "esp_heap_caps.h"
#include "freertos/FreeRTOS.h"
#include "sdkconfig.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    size_t max_cmdline_length;
    size_t max_cmdline_args;
    uint32_t heap_alloc_caps;
    int hint_color;
    int hint_bold;
} esp_console_config_t;

#define ESP_CONSOLE_CONFIG_DEFAULT()                                                                         \
    {                                                                                                        \
        .max_cmdline_length = 256, .max_cmdline_args = 32, .heap_alloc_caps = MALLOC_CAP_DEFAULT,            \
        .hint_color = 39, .hint_bold = 0                                                                     \
    }

typedef int (*esp_console_cmd_func_t)(int argc, char **argv);
typedef int (*esp_console_cmd_func_with_context_t)(void *context, int argc, char **argv);

typedef struct {
    const char *command;
    const char *help;
    const char *hint;
    esp_console_cmd_func_t func;
    void *argtable;
    esp_console_cmd_func_with_context_t func_w_context;
    void *context;
} esp_console_cmd_t;

esp_err_t esp_console_init(const esp_console_config_t *config);
esp_err_t esp_console_deinit(void);
esp_err_t esp_console_cmd_register(const esp_console_cmd_t *cmd);
esp_err_t esp_console_cmd_deregister(const char *cmd_name);
/* ESP_ERR_INVALID_ARG for an empty line, ESP_ERR_NOT_FOUND for an unknown command. */
esp_err_t esp_console_run(const char *cmdline, int *cmd_ret);
size_t esp_console_split_argv(char *line, char **argv, size_t argv_size);
esp_err_t esp_console_register_help_command(void);
esp_err_t esp_console_deregister_help_command(void);

#ifdef __cplusplus
}
#endif
