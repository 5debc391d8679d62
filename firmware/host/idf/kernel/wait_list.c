/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel.h"

/* Highest priority first, first come first among equals. */
void wait_list_insert(wait_list_t *list, task_t *task) {
    task_t **link = &list->head;
    while (*link != NULL && (*link)->priority >= task->priority) {
        link = &(*link)->wait_next;
    }
    task->wait_next = *link;
    *link = task;
    task->waiting_on = list;
}

void wait_list_remove(task_t *task) {
    if (task->waiting_on == NULL) {
        return;
    }
    task_t **link = &task->waiting_on->head;
    while (*link != NULL && *link != task) {
        link = &(*link)->wait_next;
    }
    if (*link == task) {
        *link = task->wait_next;
    }
    task->waiting_on = NULL;
    task->wait_next = NULL;
}
