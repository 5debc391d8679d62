/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/agent.h"

#include <string.h>

#include "commands.h"
#include "config.h"
#include "esp_timer.h"
#include "freertos/FreeRTOS.h"
#include "freertos/task.h"
#include "identity.h"
#include "port/port.h"
#include "record.h"
#include "reply.h"
#include "runner.h"
#include "sealed.h"
#include "wire.h"

/* Above the run task, so that an abort gets through to a bench that never blocks. It sleeps otherwise. */
enum { CONSOLE_PRIORITY = AGENT_RUN_PRIORITY + 1, CONSOLE_STACK_BYTES = AGENT_RUN_STACK_BYTES };

static int64_t s_started_us;

/* A command line on its way in. */
typedef struct {
    char text[WIRE_COMMAND_SIZE];
    size_t length;
    bool too_long;
} input_t;

static void finish_line(input_t *input) {
    input->text[input->length] = '\0';
    if (input->too_long) {
        reply_to_damaged("bad-line");
    } else if (memchr(input->text, '\0', input->length) != NULL) {
        reply_to_damaged("bad-line"); /* it would hide what follows it from the checksum */
    } else {
        commands_execute(input->text);
    }
    memset(input, 0, sizeof(*input)); /* it may have been a credential */
}

static void take_character(input_t *input, char c) {
    if (c == '\n') {
        finish_line(input);
    } else if (c == '\r') {
        return;
    } else if (input->length < sizeof(input->text) - 1) {
        input->text[input->length++] = c;
    } else {
        input->too_long = true;
    }
}

static void console_task(void *unused) {
    (void)unused;
    static input_t input;
    char chunk[128];
    identity_init(); /* takes some 100 ms on a chip, which app_main() need not wait for */
    identity_say_hello();
    sealed_carry_out();
    for (;;) {
        size_t count = port_console_read(chunk, sizeof(chunk));
        for (size_t i = 0; i < count; i++) {
            take_character(&input, chunk[i]);
        }
    }
}

int64_t agent_started_us(void) {
    return s_started_us;
}

esp_err_t agent_start(void) {
    const agent_config_t all = {
        .hold_log = true, .take_network = true, .set_clock = true, .confirm_image = true};
    return agent_start_with(&all);
}

esp_err_t agent_start_with(const agent_config_t *config) {
    s_started_us = esp_timer_get_time();
    config_set(config);
    esp_err_t err = port_console_init();
    if (err != ESP_OK) {
        return err;
    }
    record_init();
    sealed_init();
    runner_start();
    BaseType_t created = xTaskCreatePinnedToCore(console_task, "agent_console", CONSOLE_STACK_BYTES, NULL,
                                                 CONSOLE_PRIORITY, NULL, tskNO_AFFINITY);
    return created == pdPASS ? ESP_OK : ESP_ERR_NO_MEM;
}
