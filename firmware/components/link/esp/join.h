/* SPDX-License-Identifier: Apache-2.0 */
/* The network of the program that the agent is part of: seen, never changed. */
#pragma once

#include <stdbool.h>

#include "link.h"

/* Whether the network is the program's to bring up: it has an address, or has initialised Wi-Fi, or the agent
 * may not take it (agent_config_t). */
bool join_is_wanted(void);

/* Wait until the default interface has an IPv4 address; at once where it has one. */
bool join_wait(TickType_t timeout);

/* As link_environment(). */
void join_environment(link_environment_cb_t callback, void *context);
