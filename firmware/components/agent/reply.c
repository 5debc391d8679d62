/* SPDX-License-Identifier: Apache-2.0 */
#include "reply.h"

#include <string.h>

#include "record.h"

enum { BODY_SIZE = 640 };

/* All fields are guarded by the record lock. */
struct reply {
    char tag[WIRE_TAG_SIZE];
    uint32_t crc;
    bool pending;
    char body[BODY_SIZE]; /* " tag ok …"; "" when it is pending or was too long to be remembered */
    size_t start;         /* where the body starts in the open line */
};

static reply_t s_tagged;
static reply_t
    s_untagged; /* apart, because the rest of a line that was cut in two looks like such a command */
static reply_t s_deferred;
static reply_t *s_current = &s_untagged;
static uint32_t s_errors;

static bool answers(const reply_t *reply, const wire_command_t *command) {
    bool known = reply->pending || reply->body[0] != '\0';
    return known && reply->crc == command->crc && strcmp(reply->tag, command->tag) == 0;
}

static void take_up(const wire_command_t *command, bool tagged) {
    s_current = tagged ? &s_tagged : &s_untagged;
    *s_current = (reply_t){.crc = command->crc};
    strcpy(s_current->tag, command->tag);
}

bool reply_start(const wire_command_t *command) {
    wire_line_t *line = record_begin('R');
    bool tagged = strcmp(command->tag, "-") != 0;
    const reply_t *known = NULL;
    if (tagged) { /* a person's commands are executed as often as typed */
        known = answers(&s_tagged, command) ? &s_tagged : NULL;
        known = answers(&s_deferred, command) ? &s_deferred : known;
    }
    if (known == NULL) {
        take_up(command, tagged);
    }
    if (known == NULL || known->pending) {
        record_cancel(line);
        return known == NULL;
    }
    wire_line_word(line, known->body + 1);
    record_end(line);
    return false;
}

reply_t *reply_current(void) {
    return s_current;
}

reply_t *reply_defer(void) {
    wire_line_t *line = record_begin('R');
    s_deferred = *s_current;
    s_deferred.pending = true;
    record_cancel(line);
    return &s_deferred;
}

static wire_line_t *open_reply(reply_t *reply, const char *verdict) {
    wire_line_t *line = record_begin('R');
    reply->start = line->length;
    wire_line_word(line, reply->tag);
    wire_line_word(line, verdict);
    return line;
}

wire_line_t *reply_ok(reply_t *reply) {
    return open_reply(reply, "ok");
}

wire_line_t *reply_error(reply_t *reply, const char *code) {
    wire_line_t *line = open_reply(reply, "err");
    s_errors++;
    wire_line_word(line, code);
    return line;
}

void reply_end(reply_t *reply, wire_line_t *line) {
    size_t length = line->length - reply->start;
    bool fits = !line->overflow && length < sizeof(reply->body);
    memcpy(reply->body, line->text + reply->start, fits ? length : 0);
    reply->body[fits ? length : 0] = '\0';
    reply->pending = false;
    record_end(line);
}

void reply_to_damaged(const char *code) {
    wire_line_t *line = record_begin('R');
    s_errors++;
    wire_line_word(line, "- err");
    wire_line_word(line, code);
    record_end(line);
}

uint32_t reply_errors(void) {
    wire_line_t *line = record_begin('R');
    uint32_t errors = s_errors;
    record_cancel(line);
    return errors;
}
