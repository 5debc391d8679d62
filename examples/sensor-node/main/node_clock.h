/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Sets the clock from the network's time server, again and again, where one is named. */
void clock_start(void);
