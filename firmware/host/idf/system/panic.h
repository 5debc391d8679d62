/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Reports a crash on the console as ESP-IDF does, then lets it end the program. */
void panic_init(void);
