/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Draws address, temperature and counts, some times a second, in a task of its own. */
void screen_start(void);
