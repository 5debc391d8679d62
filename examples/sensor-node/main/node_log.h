/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Writes one line: "[  12.345] net   got ip 10.0.0.5", seconds since boot and who says it. */
void node_log(const char *who, const char *format, ...) __attribute__((format(printf, 2, 3)));
