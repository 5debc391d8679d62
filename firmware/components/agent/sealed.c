/* SPDX-License-Identifier: Apache-2.0 */
#include "sealed.h"

#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "port/port.h"
#include "record.h"
#include "reply.h"
#include "runner.h"
#include "wire.h"

static const char MAGIC[] = "HILSEAL1";

enum {
    MAGIC_BYTES = sizeof(MAGIC) - 1,
    HEADER_BYTES = MAGIC_BYTES + 8,
    TEXT_MAX_BYTES = 65536 - HEADER_BYTES,
    TEXT_LEAST_BYTES = 2048, /* in RAM: a word more in a script moves nothing else on the heap */
};

static char *s_text; /* in RAM: what is measured may write to the flash that it came from */
static uint32_t s_crc;
static const char *s_damage; /* why a script that is there is none */

static uint32_t little_endian(const uint8_t bytes[4]) {
    return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

/* Returns why there is no text, or NULL. */
static const char *read_text(size_t length) {
    if (length == 0 || length > TEXT_MAX_BYTES) {
        return "length";
    }
    s_text = malloc(length < TEXT_LEAST_BYTES ? TEXT_LEAST_BYTES : length + 1);
    if (s_text == NULL) {
        return "memory";
    }
    s_text[length] = '\0';
    if (port_scratch_read(HEADER_BYTES, s_text, length) != ESP_OK) {
        return "flash";
    }
    if (wire_crc32(0, s_text, length) != s_crc) {
        return "crc32";
    }
    return strlen(s_text) == length ? NULL : "text";
}

void sealed_init(void) {
    uint8_t header[HEADER_BYTES];
    if (port_scratch_read(0, header, sizeof(header)) != ESP_OK || memcmp(header, MAGIC, MAGIC_BYTES) != 0) {
        return;
    }
    s_crc = little_endian(header + MAGIC_BYTES + 4);
    s_damage = read_text(little_endian(header + MAGIC_BYTES));
    if (s_damage != NULL) {
        free(s_text);
        s_text = NULL;
    }
}

bool sealed(void) {
    return s_text != NULL;
}

uint32_t sealed_seed(void) {
    return s_crc;
}

static wire_line_t *begin_line(const char *words) {
    wire_line_t *line = record_begin('R');
    wire_line_word(line, "sealed");
    wire_line_word(line, words);
    return line;
}

static void say_damaged(void) {
    wire_line_t *line = begin_line("err bad-script");
    wire_line_text(line, "reason", s_damage);
    record_end(line);
}

static void say_done(uint32_t commands, uint32_t transfers, uint32_t failed) {
    uint32_t refused = reply_errors();
    wire_line_t *line = begin_line("ok");
    wire_line_int(line, "status", refused > 0 || failed > 0);
    wire_line_int(line, "commands", commands);
    wire_line_int(line, "refused", refused);
    wire_line_int(line, "transfers", transfers);
    wire_line_int(line, "failed", failed);
    record_end(line);
}

static void execute(char *text) {
    if (strlen(text) < WIRE_COMMAND_SIZE) {
        commands_execute(text);
    } else {
        reply_to_damaged("bad-line");
    }
}

void sealed_carry_out(void) {
    uint32_t commands = 0, transfers = 0, failed = 0;
    char *rest = NULL;
    if (s_damage != NULL) {
        say_damaged();
    }
    if (!sealed()) {
        return;
    }
    for (char *text = strtok_r(s_text, "\n", &rest); text != NULL; text = strtok_r(NULL, "\n", &rest)) {
        bool run_failed = false;
        commands++;
        execute(text);
        for (uint32_t id = runner_await(&run_failed); id != 0; id = runner_await(&run_failed)) {
            transfers++;
            failed += run_failed;
            runner_acknowledge(id);
        }
    }
    say_done(commands, transfers, failed);
}
