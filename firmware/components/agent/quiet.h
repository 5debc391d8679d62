/* SPDX-License-Identifier: Apache-2.0 */
/* Log output is held in memory while the clock runs and printed afterwards, unless the agent is to leave it
 * as it is (agent_config_t) or there is no memory for it. */
#pragma once

#include <stddef.h>

void quiet_begin(void);
/* Print what was held. */
void quiet_end(void);
/* Bytes of log since boot that did not fit, or whose place in memory was not filled by quiet_end(). */
size_t quiet_dropped_bytes(void);
