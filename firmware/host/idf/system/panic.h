/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <signal.h>

/* The signals by which the watchdogs end the program: the virtual board tells the resets apart by them. */
#define PANIC_INTERRUPT_WATCHDOG SIGXCPU /* to the thread that has the interrupts masked */
#define PANIC_TASK_WATCHDOG SIGVTALRM

/* Reports a crash on the console as ESP-IDF does, then lets it end the program. */
void panic_init(void);

/* Ends the program as abort() does, with the reset reason TASK_WDT. */
_Noreturn void panic_task_watchdog(void);

/* By an interrupt's thread: from here on floating point in it is noticed, where it would be a chip's
 * exception and this processor tells. */
void panic_trap_float(void);
