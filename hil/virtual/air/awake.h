/* SPDX-License-Identifier: Apache-2.0 */
/* Keeping the CPUs from going idle while somebody measures.
 *
 * Waking a halted CPU costs tens of µs, more under a hypervisor, at each of the half dozen hand-overs that a
 * message takes through board, air and broker. A thread on every CPU that yields to anything (SCHED_IDLE)
 * saves that, at the price of the electricity, so it ends by itself. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Keep every CPU awake until `deadline_ns` of CLOCK_MONOTONIC; a time that is past ends it. Returns false
 * where the threads cannot be had. */
bool awake_until(uint64_t deadline_ns);
