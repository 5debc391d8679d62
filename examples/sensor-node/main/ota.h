/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Begins to update the node from url, in a task of its own. It replies to command id when the new image is
 * in flash, and restarts, or when that failed. Returns what is wrong, NULL once it has begun. */
const char *ota_start(int id, const char *url);
