/* SPDX-License-Identifier: Apache-2.0 */
#include "record.h"

#include "freertos/FreeRTOS.h"
#include "freertos/semphr.h"
#include "port/port.h"

static SemaphoreHandle_t s_lock;
static uint32_t s_number; /* of the last line written; the first line after boot is 1 */
static char s_buffer[WIRE_LINE_SIZE];
static wire_line_t s_line;
static char s_kind;

void record_init(void) {
    s_lock = xSemaphoreCreateMutex();
    configASSERT(s_lock != NULL);
}

wire_line_t *record_begin(char kind) {
    xSemaphoreTake(s_lock, portMAX_DELAY);
    s_kind = kind;
    wire_line_start(&s_line, s_buffer, sizeof(s_buffer), s_number + 1, kind);
    return &s_line;
}

/* Say that a record was too long, instead of sending a cut one. */
static void say_overflow(void) {
    char kind[] = {s_kind, '\0'};
    wire_line_start(&s_line, s_buffer, sizeof(s_buffer), s_number + 1, 'R');
    wire_line_word(&s_line, "- err overflow");
    wire_line_text(&s_line, "kind", kind);
    wire_line_finish(&s_line);
}

void record_end(wire_line_t *line) {
    if (!wire_line_finish(line)) {
        say_overflow();
    }
    s_number++;
    port_console_write(line->text, line->length);
    xSemaphoreGive(s_lock);
}

void record_cancel(wire_line_t *line) {
    (void)line;
    xSemaphoreGive(s_lock);
}
