/* SPDX-License-Identifier: Apache-2.0 */
/* The connection to the broker: readings go out on it, commands come in. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

void uplink_start(void);
bool uplink_is_up(void);
uint32_t uplink_sent(void);
uint32_t uplink_acked(void);
/* Publishes JSON to sensors/<mac>/reply. */
void uplink_reply(const char *json);
/* Takes effect with the next reading; ms outside 10 to 3600000 is refused. */
bool uplink_set_period(uint32_t ms);
