/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Join the product's network by the default event loop and a station of its own, and wait until it has an
 * address; reconnects by itself. */
void network_start(void);

/* Dotted IPv4 address. */
const char *network_address(void);
