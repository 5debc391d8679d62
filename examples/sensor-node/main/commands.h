/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Obeys a command such as {"id":7,"op":"ping"} and replies. json is not terminated. */
void commands_handle(const char *json, int bytes);
/* Replies {"id":7,"ok":true}, or ok false and what was wrong. */
void commands_reply(int id, const char *error);
