/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's built-in bench `trace`: `run trace` sends what the ring holds. The console finds it by its
 * name; it is in no list of benches, as it measures nothing. */
#pragma once

#include "agent/bench.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const bench_t trace_bench;

#ifdef __cplusplus
}
#endif
