/* SPDX-License-Identifier: Apache-2.0 */
/* Small numbers for tasks and objects, as they are first seen: their addresses are claimed in a table, once,
 * by compare-and-exchange. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "trace/hooks.h"

enum {
    NAMES_TASKS = 24,
    NAMES_OBJECTS = 32,
    NAMES_NAME_SIZE = 16, /* CONFIG_FREERTOS_MAX_TASK_NAME_LEN */
};

/* 1 and above; 0, "other", where the table is full. */
uint32_t names_of_task(const void *task);
uint32_t names_of_object(const void *object, trace_object_kind_t kind);

/* The priority of its own, not an inherited one. */
void names_set_priority(uint32_t task, uint32_t base_priority);
void names_set_kind(uint32_t object, trace_object_kind_t kind);

/* What has this address is no more: who has it next gets another number. */
void names_forget_task(const void *task);
void names_forget_object(const void *object);

/* Once, before anything else; false where there is none. */
bool names_take_memory(void);

/* While nothing is recorded. */
void names_clear(void);

/* Ask the kernel for the priorities that no event told. By a task, while nothing is recorded. */
void names_complete(void);

typedef struct {
    char name[NAMES_NAME_SIZE];
    uint32_t priority; /* 0 where it is not known */
    int32_t core;      /* -1: any */
} names_task_t;

names_task_t names_task(uint32_t number);
const char *names_object_kind(uint32_t number);
