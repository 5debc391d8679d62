/* SPDX-License-Identifier: Apache-2.0 */
/* What Linux's scheduler does not give the host's kernel. */
#include <string.h>

#include "conformance.h"
#include "vboard.h"

typedef struct {
    const char *rule;
    const char *why;
} excuse_t;

/* With real-time priority; docs/explain/host-idf.md. */
static const excuse_t EXCUSES[] = {
    {"equals-take-turns-by-tick",
     "Linux has one time slice for the whole machine, which is no tick: tasks of equal "
     "priority run until they wait or yield"},
    {"inheritance-ends-with-wait",
     "a waiter that gives up has the priority that it lent, and so waits for the owner: "
     "no time slices"},
    {"critical-not-preempted", "a critical section is a lock of Linux and masks no interrupt"},
};

/* Without it Linux promises order of nothing: every task runs, in any order. */
static const char *const NEEDS_REALTIME[] = {
    "highest-ready-runs-first",
    "equals-in-order",
    "yield-to-equals",
    "yield-not-to-lower",
    "woken-higher-preempts",
    "woken-lower-waits",
    "raised-task-preempts",
    "lowering-oneself-gives-way",
    "suspended-scheduler",
    "free-task-takes-free-core",
    "receiver-before-sender",
    "mutex-owner-inherits",
    "semaphore-lends-nothing",
    "notifications-count",
    "higher-never-gives-way",
    "sleepers-wake-in-order",
    "lowered-goes-behind-equals",
};

const char *platform_excuse(const char *rule) {
    for (size_t i = 0; i < sizeof(EXCUSES) / sizeof(EXCUSES[0]); i++) {
        if (strcmp(EXCUSES[i].rule, rule) == 0) {
            return EXCUSES[i].why;
        }
    }
    bool realtime = strcmp(vboard_sched_name(), "fifo") == 0;
    for (size_t i = 0; i < sizeof(NEEDS_REALTIME) / sizeof(NEEDS_REALTIME[0]) && !realtime; i++) {
        if (strcmp(NEEDS_REALTIME[i], rule) == 0) {
            return "no real-time priority on this machine: Linux promises no order";
        }
    }
    return NULL;
}
