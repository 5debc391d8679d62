/* SPDX-License-Identifier: Apache-2.0 */
#include "parameters.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "impairment.h"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static const char *const DISTRIBUTIONS[] = {"uniform", "normal", NULL};
static const char *const GAP_MODES[] = {"hold", "drop", NULL};

#define NUMBER(type, field, most)                                                                            \
    { #field, offsetof(type, field), most, NULL }
static const parameter_t IMPAIRMENT_ROWS[] = {
    NUMBER(impairment_t, rate_kbit, 10000000),
    NUMBER(impairment_t, overhead_bytes, 65536),
    NUMBER(impairment_t, delay_us, PARAMETER_MAX_US),
    NUMBER(impairment_t, jitter_us, PARAMETER_MAX_US),
    {"distribution", offsetof(impairment_t, distribution), 0, DISTRIBUTIONS},
    NUMBER(impairment_t, correlation_ppm, PPM),
    NUMBER(impairment_t, loss_ppm, PPM),
    NUMBER(impairment_t, burst_start_ppm, PPM),
    NUMBER(impairment_t, burst_end_ppm, PPM),
    NUMBER(impairment_t, burst_loss_ppm, PPM),
    NUMBER(impairment_t, burst_good_loss_ppm, PPM),
    NUMBER(impairment_t, duplicate_ppm, PPM),
    NUMBER(impairment_t, reorder_ppm, PPM),
    NUMBER(impairment_t, limit_bytes, UINT32_MAX),
    NUMBER(impairment_t, keep_order, 1),
};
static const parameter_t GAP_ROWS[] = {
    NUMBER(gap_parameters_t, interval_us, 3600 * UINT64_C(1000000)),
    NUMBER(gap_parameters_t, min_us, PARAMETER_MAX_US),
    NUMBER(gap_parameters_t, max_us, PARAMETER_MAX_US),
    {"mode", offsetof(gap_parameters_t, mode), 0, GAP_MODES},
};

const parameter_table_t IMPAIRMENT_PARAMETERS = {IMPAIRMENT_ROWS, COUNT(IMPAIRMENT_ROWS)};
const parameter_table_t GAP_PARAMETERS = {GAP_ROWS, COUNT(GAP_ROWS)};

void reply_say(reply_t *reply, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int written = vsnprintf(reply->text + reply->length, reply->size - reply->length, format, arguments);
    va_end(arguments);
    size_t room = reply->size - reply->length - 1;
    reply->length += written < 0 ? 0 : (size_t)written < room ? (size_t)written : room;
}

static bool choose(const parameter_t *parameter, const char *value, uint64_t *number) {
    for (uint64_t i = 0; parameter->choices[i] != NULL; i++) {
        if (strcmp(parameter->choices[i], value) == 0) {
            *number = i;
            return true;
        }
    }
    return false;
}

bool parameters_parse_number(const char *value, uint64_t maximum, uint64_t *number) {
    char *end;
    errno = 0;
    *number = strtoull(value, &end, 10);
    return value[0] >= '0' && value[0] <= '9' && *end == '\0' && errno == 0 && *number <= maximum;
}

static void say_bad_value(reply_t *reply, const parameter_t *parameter, const char *value) {
    reply_say(reply, "error code=bad-value key=%s value=%s allowed=", parameter->key, value);
    if (parameter->choices == NULL) {
        reply_say(reply, "0..%" PRIu64, parameter->maximum);
        return;
    }
    for (size_t i = 0; parameter->choices[i] != NULL; i++) {
        reply_say(reply, "%s%s", i > 0 ? "," : "", parameter->choices[i]);
    }
}

static void say_unknown_key(reply_t *reply, const parameter_table_t *table, const char *key) {
    reply_say(reply, "error code=unknown-key key=%s known=", key);
    for (size_t i = 0; i < table->count; i++) {
        reply_say(reply, "%s%s", i > 0 ? "," : "", table->rows[i].key);
    }
}

static const parameter_t *find(const parameter_table_t *table, const char *key) {
    for (size_t i = 0; i < table->count; i++) {
        if (strcmp(table->rows[i].key, key) == 0) {
            return &table->rows[i];
        }
    }
    return NULL;
}

static bool parse(const parameter_t *parameter, const char *value, uint64_t *number) {
    return parameter->choices != NULL ? choose(parameter, value, number)
                                      : parameters_parse_number(value, parameter->maximum, number);
}

bool parameters_fill(void *target, const parameter_table_t *table, const arguments_t *arguments,
                     reply_t *reply) {
    for (size_t i = 0; i < arguments->rest_count; i++) {
        const char *key = arguments->rest[i][0], *value = arguments->rest[i][1];
        const parameter_t *parameter = find(table, key);
        uint64_t number;
        if (parameter == NULL) {
            say_unknown_key(reply, table, key);
            return false;
        }
        if (!parse(parameter, value, &number)) {
            say_bad_value(reply, parameter, value);
            return false;
        }
        memcpy((char *)target + parameter->offset, &number, sizeof(number));
    }
    return true;
}

void parameters_show(reply_t *reply, const char *prefix, const void *source, const parameter_table_t *table) {
    for (size_t i = 0; i < table->count; i++) {
        const parameter_t *row = &table->rows[i];
        uint64_t number;
        memcpy(&number, (const char *)source + row->offset, sizeof(number));
        if (row->choices != NULL) {
            reply_say(reply, " %s%s=%s", prefix, row->key, row->choices[number]);
        } else {
            reply_say(reply, " %s%s=%" PRIu64, prefix, row->key, number);
        }
    }
}
