/* SPDX-License-Identifier: Apache-2.0 */
/* quiet.c: log text waits while the clock runs; what of it is lost is counted. The console is the test's. */
#include "expect.h"

#include <stdarg.h>

#include "agent/agent.h"
#include "config.h"
#include "esp_log.h"
#include "port/port.h"
#include "quiet.h"

static char s_printed[8192];
static size_t s_printed_length;

void port_console_write(const char *bytes, size_t length) {
    EXPECT(s_printed_length + length < sizeof(s_printed));
    memcpy(s_printed + s_printed_length, bytes, length);
    s_printed_length += length;
    s_printed[s_printed_length] = '\0';
}

/* Log as a task does, through whatever prints log lines now. */
static void print(const char *format, ...) {
    vprintf_like_t printer = esp_log_set_vprintf(vprintf);
    va_list arguments;
    va_start(arguments, format);
    printer(format, arguments);
    va_end(arguments);
    esp_log_set_vprintf(printer);
}

static int s_calls;

static int count_calls(const char *format, va_list arguments) {
    (void)format, (void)arguments;
    return ++s_calls;
}

static void start(void) {
    s_printed_length = 0;
    s_printed[0] = '\0';
    quiet_begin();
}

static void text_comes_after_the_run(void) {
    start();
    print("one\n");
    print("two\n");
    EXPECT(s_printed_length == 0);
    quiet_end();
    EXPECT_TEXT(s_printed, "one\ntwo\n");
    EXPECT(quiet_dropped_bytes() == 0);
}

/* A place that was reserved and not filled cuts the text: so does a NUL where a line should go on. */
static void what_follows_an_unfinished_line_is_counted(void) {
    size_t before = quiet_dropped_bytes();
    start();
    print("whole\n");
    print("%chalf\n", 0);
    print("behind\n");
    quiet_end();
    EXPECT_TEXT(s_printed, "whole\n");
    EXPECT(quiet_dropped_bytes() - before == strlen("-half\nbehind\n"));
}

/* Every byte was either printed or counted, also where a line straddles the end of the memory. */
static void what_does_not_fit_is_counted_once(void) {
    size_t before = quiet_dropped_bytes();
    start();
    for (int i = 0; i < 100; i++) {
        print("%098d\n", i);
    }
    quiet_end();
    EXPECT(s_printed_length > 0 && s_printed_length < 9900);
    EXPECT(quiet_dropped_bytes() - before == 9900 - s_printed_length);
}

/* A program of somebody's keeps its own printer, and nothing is held. */
static void real_log_text_is_left_to_whoever_prints_it(void) {
    const agent_config_t none = {0};
    config_set(&none);
    vprintf_like_t before = esp_log_set_vprintf(count_calls);
    start();
    print("now\n");
    EXPECT(s_calls == 1);
    quiet_end();
    EXPECT(s_printed_length == 0);
    EXPECT(esp_log_set_vprintf(before) == count_calls);
}

int main(void) {
    const agent_config_t held = {.hold_log = true};
    config_set(&held);
    text_comes_after_the_run();
    what_follows_an_unfinished_line_is_counted();
    what_does_not_fit_is_counted_once();
    real_log_text_is_left_to_whoever_prints_it();
    return 0;
}
