/* SPDX-License-Identifier: Apache-2.0 */
/* A message names its row by number, in JSON with a nonce or in six digits alone. */
#include <stdio.h>
#include <string.h>

#include "expect.h"
#include "load/message.h"

enum { LENGTH = LOAD_MESSAGE_MIN_BYTES };

static void json_names_number_and_run(void) {
    char text[LENGTH + 1] = {0};
    load_message_write(text, LENGTH, UINT32_MAX - 1, UINT32_MAX, UINT32_MAX);
    EXPECT(strlen(text) == LENGTH);
    EXPECT(strncmp(text, "{\"n\":4294967294,\"run\":4294967295,\"planned_us\":4294967295,\"pad\":\"x", 64) ==
           0);
    EXPECT(strcmp(text + LENGTH - 2, "\"}") == 0);
    EXPECT(load_message_number(text, LENGTH, UINT32_MAX) == UINT32_MAX - 1);
}

static void another_runs_message_is_none_of_ours(void) {
    char text[LENGTH];
    load_message_write(text, LENGTH, 7, 1, 2);
    EXPECT(load_message_number(text, LENGTH, 1) == 7);
    EXPECT(load_message_number(text, LENGTH, 2) == LOAD_NO_NUMBER);
    EXPECT(load_message_number("hello", 5, 1) == LOAD_NO_NUMBER);
    EXPECT(load_message_number("", 0, 1) == LOAD_NO_NUMBER);
}

static void digits_begin_a_message_of_any_length(void) {
    char text[] = "......x";
    load_digits_write(text, 7, 1234567, 0, 0);
    EXPECT(strcmp(text, "234567x") == 0);
    EXPECT(load_digits_number(text, 7, 9) == 234567);
    EXPECT(load_digits_number(text, 5, 9) == LOAD_NO_NUMBER);
    EXPECT(load_digits_number("12345x", 6, 9) == LOAD_NO_NUMBER);
}

int main(void) {
    json_names_number_and_run();
    another_runs_message_is_none_of_ours();
    digits_begin_a_message_of_any_length();
    return 0;
}
