/* SPDX-License-Identifier: Apache-2.0 */
/* The Wi-Fi station. It connects again by itself whenever the network is lost. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

void net_start(void);
/* Waits until the node has an address for the first time. */
void net_wait(void);
/* "10.0.0.5", or "-" without an address. */
void net_address(char *out, size_t out_bytes);
bool net_is_up(void);
