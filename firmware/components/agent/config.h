/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "agent/agent.h"

/* What agent_config() returns from here on. */
void config_set(const agent_config_t *config);
