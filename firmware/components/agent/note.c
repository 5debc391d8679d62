/* SPDX-License-Identifier: Apache-2.0 */
/* bench_note(): what a bench tells the host's peer while it runs. */
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/bench.h"
#include "esp_log.h"
#include "record.h"
#include "runner.h"

#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

enum { FIELDS_SIZE = 201 }; /* agent/bench.h promises 200 characters */

static const char *TAG = "bench";

/* A note that the host could not read would only look like a peer that does not act. */
__attribute__((noreturn)) static void reject(const char *kind, const char *why) {
    ESP_LOGE(TAG, "note %s: %s", kind, why);
    abort();
}

/* As the host reads them: a kind is [a-z][a-z0-9_-]*, a key [A-Za-z][A-Za-z0-9_]*. */
static bool is_word(const char *text, const char *first, const char *all) {
    return *text != '\0' && strchr(first, *text) != NULL && text[strspn(text, all)] == '\0';
}

static bool is_kind(const char *text) {
    return is_word(text, LOWER, LOWER DIGITS "_-");
}

static bool is_key(const char *text) {
    return is_word(text, LOWER UPPER, LOWER UPPER DIGITS "_");
}

/* Append a word `key=value`, the value escaped. */
static void write_field(wire_line_t *line, const char *kind, char *word) {
    char *equals = strchr(word, '=');
    if (equals == NULL) {
        reject(kind, "a word that is no key=value");
    }
    *equals = '\0';
    if (!is_key(word)) {
        reject(kind, "a key that is not [A-Za-z][A-Za-z0-9_]*");
    }
    wire_line_text(line, word, equals + 1);
}

void bench_note(const bench_run_t *run, const char *kind, const char *format, ...) {
    (void)run;
    char fields[FIELDS_SIZE];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(fields, sizeof(fields), format, args);
    va_end(args);
    if (length < 0 || (size_t)length >= sizeof(fields)) {
        reject(kind, "more than 200 characters");
    }
    if (!is_kind(kind)) {
        reject(kind, "a kind that is not [a-z][a-z0-9_-]*");
    }
    uint32_t transfer = runner_next_transfer();
    wire_line_t *line = record_begin('N');
    wire_line_number(line, transfer);
    wire_line_word(line, kind);
    char *rest = NULL;
    for (char *word = strtok_r(fields, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
        write_field(line, kind, word);
    }
    record_end(line);
}
