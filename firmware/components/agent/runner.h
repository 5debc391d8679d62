/* SPDX-License-Identifier: Apache-2.0 */
/* The run task: runs benches and brings up the link, while the console task goes on answering. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "esp_err.h"
#include "freertos/FreeRTOS.h"
#include "reply.h"
#include "run.h"

void runner_start(void);

/* "idle", "linking", "running" or "holding" (a transfer waits for its acknowledgement). */
const char *runner_state_name(void);
bool runner_is_idle(void);

/* Id of the transfer that is held, 0 for none. */
uint32_t runner_held_transfer(void);
/* Id of the next transfer that is sent; while a bench runs, of the one that it will send. */
uint32_t runner_next_transfer(void);

/* Start a job. Only when idle. */
void runner_run(const bench_run_t *run);
void runner_link_up(TickType_t timeout, reply_t *reply);

/* Wait until a transfer is held, and return its id and whether its run failed, or 0 once nothing is to be
 * done. For a task that submits all jobs itself. */
uint32_t runner_await(bool *failed);

/* Let go of the held transfer. Returns false if it is not this one. */
bool runner_acknowledge(uint32_t transfer);

/* Ask the bench to end and let go of a held transfer. */
void runner_abort(void);

typedef enum { RUNNER_SENT, RUNNER_NO_TRANSFER, RUNNER_NO_BLOCK } runner_resend_t;

/* Repeat the blocks whose bit is set, or the begin and end lines if none is. `accepted` is called before
 * the first line. */
runner_resend_t runner_resend(uint32_t transfer, uint64_t blocks, void (*accepted)(void));
