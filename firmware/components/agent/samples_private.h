/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's side of the sample buffer (agent/samples.h is the bench's). */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "agent/samples.h"

enum { SAMPLES_ENVIRONMENT_SIZE = 768, SAMPLES_ERROR_SIZE = 256 };

/* Sends the buffer as one transfer and waits for its acknowledgement. */
typedef esp_err_t (*samples_send_t)(bench_samples_t *samples);

struct bench_samples {
    size_t columns;
    size_t rows;
    size_t warmup_rows;
    unsigned burst;   /* 1 is the first */
    atomic_int fault; /* first esp_err_t of a call that returns none */
    samples_send_t send;
    size_t environment_length;
    char environment[SAMPLES_ENVIRONMENT_SIZE]; /* " key=value key=value", escaped */
    bench_owner_t owner;                        /* of the failure that bench_fail() told, with its sentence */
    char error[SAMPLES_ERROR_SIZE];
};

/* Allocate the buffer's cells, before a run, and give them back when nothing of it is to be sent any more.
 * Without memory it says so as bench_fail() does, and returns ESP_ERR_NO_MEM. */
esp_err_t samples_take_arena(bench_samples_t *samples);
void samples_drop_arena(void);

/* Start a run: empty, burst 1. */
void samples_reset(bench_samples_t *samples, size_t columns, samples_send_t send);

/* Drop the rows, as after a failed run. */
void samples_discard(bench_samples_t *samples);

/* "firmware", "configuration", "rig" */
const char *samples_owner_name(bench_owner_t owner);

uint32_t samples_get(const bench_samples_t *samples, size_t row, size_t column);
