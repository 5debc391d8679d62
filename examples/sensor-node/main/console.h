/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Reads commands from the serial port: set, status, reboot, help. */
void console_start(void);
