/* SPDX-License-Identifier: Apache-2.0 */
/* A transfer: begin line, data lines, end line of one burst. It stays until the host acknowledged it. */
#pragma once

#include <stdint.h>

#include "run.h"
#include "samples_private.h"

typedef struct {
    uint32_t id;
    const bench_run_t *run;
    const bench_samples_t *samples;
    const char *status; /* "ok", "aborted" or an esp_err_t's name */
    bool failed;        /* the status is an error of the bench: its owner and sentence belong to it */
    bool last;          /* no further burst follows */
} transfer_t;

void transfer_send(const transfer_t *transfer);

/* Repeat the begin and the end line. */
void transfer_send_frame(const transfer_t *transfer);

/* Repeat the blocks whose bit is set. Call it only for blocks below transfer_block_count(). */
void transfer_send_blocks(const transfer_t *transfer, uint64_t wanted);
size_t transfer_block_count(const transfer_t *transfer);
