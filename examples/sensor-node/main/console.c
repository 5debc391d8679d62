/* SPDX-License-Identifier: Apache-2.0 */
#include "console.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "driver/uart.h"
#include "driver/uart_vfs.h"
#include "esp_console.h"
#include "esp_system.h"
#include "freertos/FreeRTOS.h"
#include "freertos/task.h"
#include "net.h"
#include "node_log.h"
#include "sdkconfig.h"
#include "settings.h"
#include "uplink.h"

#define TASK_STACK_BYTES 4096
#define TASK_PRIORITY 2
#define LINE_BYTES 256
#define PAUSE_MS 50
#define SET_HELP "wifi <ssid> <password> | mqtt <uri> [user password] | ntp <server>"

static bool store(const char *space, const char *key, const char *value) {
    esp_err_t err = settings_set(space, key, value);
    if (err != ESP_OK) {
        node_log("set", "%s/%s: %s", space, key, esp_err_to_name(err));
    }
    return err == ESP_OK;
}

static int set(int argc, char **argv) {
    bool done = false;
    if (argc == 4 && strcmp(argv[1], "wifi") == 0) {
        done = store("wifi", "ssid", argv[2]) && store("wifi", "password", argv[3]);
    } else if ((argc == 3 || argc == 5) && strcmp(argv[1], "mqtt") == 0) {
        done = store("mqtt", "uri", argv[2]) && store("mqtt", "user", argc == 5 ? argv[3] : "") &&
               store("mqtt", "password", argc == 5 ? argv[4] : "");
    } else if (argc == 3 && strcmp(argv[1], "ntp") == 0) {
        done = store("node", "ntp", argv[2]);
    } else {
        node_log("set", SET_HELP);
        return 1;
    }
    node_log("set", "%s %s", argv[1], done ? "ok" : "failed");
    return done ? 0 : 1;
}

static int status(int argc, char **argv) {
    char address[16];
    (void)argc;
    (void)argv;
    net_address(address, sizeof address);
    node_log("stat", "ip=%s mqtt=%s sent=%" PRIu32 " acked=%" PRIu32, address, uplink_is_up() ? "up" : "down",
             uplink_sent(), uplink_acked());
    return 0;
}

static int reboot(int argc, char **argv) {
    (void)argc;
    (void)argv;
    node_log("node", "reboot");
    fflush(stdout);
    esp_restart();
    return 0;
}

static void obey(char *line) {
    int result = 0;
    line[strcspn(line, "\r\n")] = '\0';
    if (esp_console_run(line, &result) == ESP_ERR_NOT_FOUND) {
        node_log("cons", "unknown: %s", line);
    }
}

static void read_lines(void *arg) {
    char line[LINE_BYTES];
    (void)arg;
    for (;;) {
        if (fgets(line, sizeof line, stdin) != NULL) {
            obey(line);
        } else {
            clearerr(stdin);
            vTaskDelay(pdMS_TO_TICKS(PAUSE_MS));
        }
    }
}

static void open_port(void) {
    setvbuf(stdin, NULL, _IONBF, 0);
    ESP_ERROR_CHECK(uart_driver_install(CONFIG_ESP_CONSOLE_UART_NUM, LINE_BYTES, 0, 0, NULL, 0));
    uart_vfs_dev_use_driver(CONFIG_ESP_CONSOLE_UART_NUM);
    uart_vfs_dev_port_set_rx_line_endings(CONFIG_ESP_CONSOLE_UART_NUM, ESP_LINE_ENDINGS_CR);
}

void console_start(void) {
    static const esp_console_cmd_t commands[] = {
        {.command = "set", .help = SET_HELP, .func = set},
        {.command = "status", .help = "what the node is connected to", .func = status},
        {.command = "reboot", .help = "start again", .func = reboot},
    };
    const esp_console_config_t config = ESP_CONSOLE_CONFIG_DEFAULT();
    open_port();
    ESP_ERROR_CHECK(esp_console_init(&config));
    ESP_ERROR_CHECK(esp_console_register_help_command());
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        ESP_ERROR_CHECK(esp_console_cmd_register(&commands[i]));
    }
    xTaskCreate(read_lines, "console", TASK_STACK_BYTES, NULL, TASK_PRIORITY, NULL);
}
