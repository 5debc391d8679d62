/* SPDX-License-Identifier: Apache-2.0 */
#include "control.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "awake.h"
#include "parameters.h"

#define AWAKE_MAX_MS 600000u

static bool split_arguments(char **cursor, arguments_t *arguments, reply_t *reply) {
    for (char *word = strtok_r(NULL, " \n", cursor); word != NULL; word = strtok_r(NULL, " \n", cursor)) {
        char *value = strchr(word, '=');
        if (value == NULL) {
            reply_say(reply, "error code=not-key-value word=%s", word);
            return false;
        }
        *value++ = '\0';
        if (strcmp(word, "link") == 0) {
            arguments->link = value;
        } else if (strcmp(word, "direction") == 0) {
            arguments->direction = value;
        } else if (arguments->rest_count == ARGUMENTS_MAX) {
            reply_say(reply, "error code=too-many-keys key=%s", word);
            return false;
        } else {
            arguments->rest[arguments->rest_count][0] = word;
            arguments->rest[arguments->rest_count++][1] = value;
        }
    }
    return true;
}

static bool selects(const arguments_t *arguments, const link_t *link) {
    return arguments->link == NULL || strcmp(arguments->link, "all") == 0 ||
           strcmp(arguments->link, link->name) == 0;
}

static bool selects_direction(const arguments_t *arguments, const direction_t *direction) {
    return arguments->direction == NULL || strcmp(arguments->direction, "both") == 0 ||
           strcmp(arguments->direction, direction->name) == 0;
}

static bool check_selection(const air_t *air, const arguments_t *arguments, reply_t *reply) {
    size_t selected = 0;
    for (size_t i = 0; i < air->link_count; i++) {
        selected += selects(arguments, &air->links[i]);
    }
    if (selected == 0) {
        reply_say(reply, "error code=unknown-link link=%s", arguments->link ? arguments->link : "");
        return false;
    }
    const char *direction = arguments->direction;
    if (direction != NULL && strcmp(direction, "both") != 0 && strcmp(direction, "uplink") != 0 &&
        strcmp(direction, "downlink") != 0) {
        reply_say(reply, "error code=unknown-direction direction=%s known=uplink,downlink,both", direction);
        return false;
    }
    return true;
}

static void set_impairment(link_t *link, const arguments_t *arguments, reply_t *reply) {
    for (int i = 0; i < DIRECTIONS && reply->length == 0; i++) {
        direction_t *direction = &link->directions[i];
        impairment_t changed = direction->impairment;
        if (selects_direction(arguments, direction) &&
            parameters_fill(&changed, &IMPAIRMENT_PARAMETERS, arguments, reply)) {
            direction_set(direction, &changed);
        }
    }
}

static void set_gap(link_t *link, const arguments_t *arguments, reply_t *reply) {
    gap_parameters_t changed = link->gap.parameters;
    if (!parameters_fill(&changed, &GAP_PARAMETERS, arguments, reply)) {
        return;
    }
    if (changed.interval_us > 0 && (changed.max_us == 0 || changed.min_us > changed.max_us)) {
        reply_say(reply, "error code=bad-value key=max_us value=%" PRIu64 " allowed=min_us..%" PRIu64,
                  changed.max_us, PARAMETER_MAX_US);
        return;
    }
    link_set_gap(link, &changed);
}

static void set_up(link_t *link, const arguments_t *arguments, reply_t *reply) {
    (void)arguments, (void)reply;
    link->up = true;
}

static void set_down(link_t *link, const arguments_t *arguments, reply_t *reply) {
    (void)arguments, (void)reply;
    link->up = false;
}

static void seed_link(link_t *link, const arguments_t *arguments, reply_t *reply) {
    uint64_t seed;
    bool given = arguments->rest_count == 1 && strcmp(arguments->rest[0][0], "value") == 0;
    if (!given || !parameters_parse_number(arguments->rest[0][1], UINT64_MAX, &seed)) {
        reply_say(reply, "error code=bad-value key=value allowed=0..%" PRIu64, UINT64_MAX);
        return;
    }
    link_seed(link, seed);
}

static void reset_link(link_t *link, const arguments_t *arguments, reply_t *reply) {
    (void)reply;
    link->still_max_us = 0;
    for (int i = 0; i < DIRECTIONS; i++) {
        if (selects_direction(arguments, &link->directions[i])) {
            statistics_reset(&link->directions[i].statistics);
        }
    }
}

static void show_link(link_t *link, const arguments_t *arguments, reply_t *reply) {
    for (int i = 0; i < DIRECTIONS; i++) {
        const direction_t *direction = &link->directions[i];
        if (selects_direction(arguments, direction)) {
            reply_say(reply, "%slink=%s direction=%s up=%d", reply->length ? "\n" : "", link->name,
                      direction->name, link->up);
            parameters_show(reply, "", &direction->impairment, &IMPAIRMENT_PARAMETERS);
            parameters_show(reply, "gap_", &link->gap.parameters, &GAP_PARAMETERS);
        }
    }
}

static void show_statistics(link_t *link, const arguments_t *arguments, reply_t *reply) {
    for (int i = 0; i < DIRECTIONS; i++) {
        const direction_t *direction = &link->directions[i];
        if (!selects_direction(arguments, direction)) {
            continue;
        }
        reply_say(reply,
                  "%slink=%s direction=%s changes=%" PRIu64 " still_max_us=%" PRIu64 " backlog_bytes=%" PRIu64
                  " in_flight_frames=%" PRIu64 " ",
                  reply->length ? "\n" : "", link->name, direction->name, link->changes, link->still_max_us,
                  direction_backlog_bytes(direction), direction->in_flight_frames);
        size_t room = reply->size - reply->length - 1;
        reply->length += statistics_format(&direction->statistics, reply->text + reply->length, room);
    }
}

typedef struct {
    const char *verb;
    bool acts;    /* replies "ok"; the others reply with what they show */
    bool changes; /* what the link does to frames */
    void (*apply)(link_t *link, const arguments_t *arguments, reply_t *reply);
} command_t;

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static const command_t COMMANDS[] = {
    {"set", true, true, set_impairment}, {"gap", true, true, set_gap},
    {"up", true, true, set_up},          {"down", true, true, set_down},
    {"seed", true, false, seed_link},    {"reset", true, false, reset_link},
    {"show", false, false, show_link},   {"statistics", false, false, show_statistics},
};

static void apply(air_t *air, const command_t *command, const arguments_t *arguments, reply_t *reply) {
    for (size_t i = 0; i < air->link_count; i++) {
        if (selects(arguments, &air->links[i])) {
            command->apply(&air->links[i], arguments, reply);
            air->links[i].changes += command->changes && reply->length == 0;
        }
        if (command->acts && reply->length > 0) {
            return; /* the first mistake; values are checked before the first link changes */
        }
    }
    if (command->acts) {
        reply_say(reply, "ok");
    }
}

static void say_info(const air_t *air, reply_t *reply) {
    reply_say(reply, "links=%zu priority=%d memory_locked=%d seed=%" PRIu64, air->link_count, air->priority,
              air->memory_locked, air->seed);
}

static void keep_awake(const arguments_t *arguments, reply_t *reply) {
    uint64_t for_ms;
    bool given = arguments->rest_count == 1 && strcmp(arguments->rest[0][0], "for_ms") == 0;
    if (!given || !parameters_parse_number(arguments->rest[0][1], AWAKE_MAX_MS, &for_ms)) {
        reply_say(reply, "error code=bad-value key=for_ms allowed=0..%u", AWAKE_MAX_MS);
        return;
    }
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t now_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    bool kept = awake_until(for_ms > 0 ? now_ns + for_ms * 1000000u : 0);
    reply_say(reply, kept || for_ms == 0 ? "ok" : "error code=no-threads");
}

void control_execute(air_t *air, char *text, char *buffer, size_t size) {
    reply_t reply = {.text = buffer, .size = size};
    arguments_t arguments = {0};
    char *cursor;
    const char *verb = strtok_r(text, " \n", &cursor);
    buffer[0] = '\0';
    if (verb != NULL && strcmp(verb, "info") == 0) {
        say_info(air, &reply);
        return;
    }
    if (verb != NULL && strcmp(verb, "awake") == 0) {
        if (split_arguments(&cursor, &arguments, &reply)) {
            keep_awake(&arguments, &reply);
        }
        return;
    }
    for (size_t i = 0; verb != NULL && i < COUNT(COMMANDS); i++) {
        if (strcmp(COMMANDS[i].verb, verb) == 0) {
            if (split_arguments(&cursor, &arguments, &reply) && check_selection(air, &arguments, &reply)) {
                apply(air, &COMMANDS[i], &arguments, &reply);
            }
            return;
        }
    }
    reply_say(&reply, "error code=unknown-command command=%s known=info,awake", verb ? verb : "");
    for (size_t i = 0; i < COUNT(COMMANDS); i++) {
        reply_say(&reply, ",%s", COMMANDS[i].verb);
    }
}
