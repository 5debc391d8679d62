/* SPDX-License-Identifier: Apache-2.0 */
/* Says what was expected, where, and ends the test. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPECT(condition)                                                                                    \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "%s:%d: expected %s\n", __FILE__, __LINE__, #condition);                         \
            exit(EXIT_FAILURE);                                                                              \
        }                                                                                                    \
    } while (0)

#define EXPECT_TEXT(actual, wanted)                                                                          \
    do {                                                                                                     \
        const char *actual_ = (actual);                                                                      \
        const char *wanted_ = (wanted);                                                                      \
        if (strcmp(actual_, wanted_) != 0) {                                                                 \
            fprintf(stderr, "%s:%d: expected \"%s\", got \"%s\"\n", __FILE__, __LINE__, wanted_, actual_);   \
            exit(EXIT_FAILURE);                                                                              \
        }                                                                                                    \
    } while (0)
