/* SPDX-License-Identifier: Apache-2.0 */
/* The task watchdog's look at the idle tasks. A load at full speed may keep a core's idle task waiting for
 * longer than CONFIG_ESP_TASK_WDT_TIMEOUT_S, which is a result and no fault. Other subscribers stay watched.
 */
#pragma once

/* Watch no idle task. */
void load_idle_watch_stop(void);

/* Watch those that sdkconfig names. */
void load_idle_watch_restore(void);
