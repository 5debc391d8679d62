/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Make a TAP device in the network namespace at `netns_path` ("" = this one) and return its descriptor.
 * The device goes away with the descriptor. Exits with a sentence on stderr when it cannot. */
int tap_open(const char *netns_path, const char *device);
