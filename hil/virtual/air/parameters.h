/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters by name: tables that read, check and show the numbers of a struct; and the reply being written.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARGUMENTS_MAX 32
#define PARAMETER_MAX_US UINT64_C(60000000)

typedef struct {
    char *text;
    size_t size;
    size_t length;
} reply_t;

/* The key=value words of a command; link and direction are taken out. */
typedef struct {
    const char *link;
    const char *direction;
    char *rest[ARGUMENTS_MAX][2];
    size_t rest_count;
} arguments_t;

typedef struct {
    const char *key;
    size_t offset; /* of a uint64_t */
    uint64_t maximum;
    const char *const *choices; /* NULL: a number */
} parameter_t;

typedef struct {
    const parameter_t *rows;
    size_t count;
} parameter_table_t;

extern const parameter_table_t IMPAIRMENT_PARAMETERS;
extern const parameter_table_t GAP_PARAMETERS;

/* Append to the reply, cut at its size. */
__attribute__((format(printf, 2, 3))) void reply_say(reply_t *reply, const char *format, ...);

bool parameters_parse_number(const char *value, uint64_t maximum, uint64_t *number);
/* Write the arguments into a struct by its table; says what is wrong and returns false. */
bool parameters_fill(void *target, const parameter_table_t *table, const arguments_t *arguments,
                     reply_t *reply);
void parameters_show(reply_t *reply, const char *prefix, const void *source, const parameter_table_t *table);
