/* SPDX-License-Identifier: Apache-2.0 */
#include "freertos/event_groups.h"

#include <stdlib.h>
#include <string.h>

#include "kernel.h"

#define USABLE_BITS 0x00ffffffU

struct EventGroupDef_t {
    EventBits_t bits;
    wait_list_t waiters;
    bool is_static;
};

_Static_assert(sizeof(struct EventGroupDef_t) <= sizeof(StaticEventGroup_t),
               "StaticEventGroup_t is too small");

EventGroupHandle_t xEventGroupCreate(void) {
    EventGroupHandle_t group = calloc(1, sizeof(struct EventGroupDef_t));
    traceEVENT_GROUP_CREATE(group);
    return group;
}

EventGroupHandle_t xEventGroupCreateStatic(StaticEventGroup_t *pxEventGroupBuffer) {
    EventGroupHandle_t group = (EventGroupHandle_t)(void *)pxEventGroupBuffer;
    memset(group, 0, sizeof *group);
    group->is_static = true;
    traceEVENT_GROUP_CREATE(group);
    return group;
}

static bool satisfied(EventBits_t have, EventBits_t wanted, bool all) {
    return all ? (have & wanted) == wanted : (have & wanted) != 0;
}

/* In the kernel. Every satisfied waiter sees the bits as set; what they clear is cleared after all of them.
 */
static void set_bits(EventGroupHandle_t group, EventBits_t bits) {
    traceEVENT_GROUP_SET_BITS(group, bits);
    group->bits |= bits;
    EventBits_t clear = 0;
    task_t *next = NULL;
    for (task_t *task = group->waiters.head; task != NULL; task = next) {
        next = task->wait_next;
        if (satisfied(group->bits, task->event.bits, task->event.all)) {
            clear |= task->event.clear ? task->event.bits : 0;
            task->event.bits = group->bits;
            task->event.satisfied = true;
            kernel_wake(task);
        }
    }
    group->bits &= ~clear;
}

/* In the kernel. The bits at the moment the wait was satisfied, or at the deadline. */
static EventBits_t wait_bits(EventGroupHandle_t group, task_t *self, EventBits_t wanted, bool clear, bool all,
                             TickType_t ticks) {
    if (satisfied(group->bits, wanted, all)) {
        traceEVENT_GROUP_WAIT_BITS_END(group, wanted, false);
        EventBits_t seen = group->bits;
        group->bits &= clear ? ~wanted : ~(EventBits_t)0;
        return seen;
    }
    int64_t deadline_us = ticks_deadline_us(ticks);
    self->event = (event_wait_t){.bits = wanted, .all = all, .clear = clear};
    if (ticks > 0) {
        traceEVENT_GROUP_WAIT_BITS_BLOCK(group, wanted);
    }
    while (ticks > 0 && !self->event.satisfied && kernel_block(self, &group->waiters, deadline_us)) {
    }
    traceEVENT_GROUP_WAIT_BITS_END(group, wanted, !self->event.satisfied);
    return self->event.satisfied ? self->event.bits : group->bits;
}

EventBits_t xEventGroupWaitBits(EventGroupHandle_t xEventGroup, const EventBits_t uxBitsToWaitFor,
                                const BaseType_t xClearOnExit, const BaseType_t xWaitForAllBits,
                                TickType_t xTicksToWait) {
    configASSERT(uxBitsToWaitFor != 0 && (uxBitsToWaitFor & ~USABLE_BITS) == 0);
    task_t *self = kernel_enter();
    EventBits_t bits =
        wait_bits(xEventGroup, self, uxBitsToWaitFor, xClearOnExit, xWaitForAllBits, xTicksToWait);
    kernel_leave(self);
    return bits;
}

EventBits_t xEventGroupSetBits(EventGroupHandle_t xEventGroup, const EventBits_t uxBitsToSet) {
    configASSERT((uxBitsToSet & ~USABLE_BITS) == 0);
    task_t *self = kernel_enter();
    set_bits(xEventGroup, uxBitsToSet);
    EventBits_t bits = xEventGroup->bits;
    kernel_leave(self);
    return bits;
}

EventBits_t xEventGroupClearBits(EventGroupHandle_t xEventGroup, const EventBits_t uxBitsToClear) {
    task_t *self = kernel_enter();
    EventBits_t before = xEventGroup->bits;
    xEventGroup->bits &= ~uxBitsToClear;
    kernel_leave(self);
    return before;
}

void vEventGroupSetBitsCallback(void *pvEventGroup, const uint32_t ulBitsToSet) {
    (void)xEventGroupSetBits(pvEventGroup, ulBitsToSet);
}

void vEventGroupClearBitsCallback(void *pvEventGroup, const uint32_t ulBitsToClear) {
    (void)xEventGroupClearBits(pvEventGroup, ulBitsToClear);
}

/* How many tasks a bit wakes is not bounded, so an interrupt leaves it to the timer task, whose queue may be
 * full. */
BaseType_t xEventGroupSetBitsFromISR(EventGroupHandle_t xEventGroup, const EventBits_t uxBitsToSet,
                                     BaseType_t *pxHigherPriorityTaskWoken) {
    return xTimerPendFunctionCallFromISR(vEventGroupSetBitsCallback, xEventGroup, uxBitsToSet,
                                         pxHigherPriorityTaskWoken);
}

BaseType_t xEventGroupClearBitsFromISR(EventGroupHandle_t xEventGroup, const EventBits_t uxBitsToClear) {
    return xTimerPendFunctionCallFromISR(vEventGroupClearBitsCallback, xEventGroup, uxBitsToClear, NULL);
}

EventBits_t xEventGroupGetBitsFromISR(EventGroupHandle_t xEventGroup) {
    return xEventGroupClearBits(xEventGroup, 0);
}

EventBits_t xEventGroupSync(EventGroupHandle_t xEventGroup, const EventBits_t uxBitsToSet,
                            const EventBits_t uxBitsToWaitFor, TickType_t xTicksToWait) {
    task_t *self = kernel_enter();
    EventBits_t with_mine = xEventGroup->bits | uxBitsToSet;
    set_bits(xEventGroup, uxBitsToSet);
    if (satisfied(with_mine, uxBitsToWaitFor, true)) {
        xEventGroup->bits &= ~uxBitsToWaitFor; /* the last to arrive does not wait */
    } else {
        with_mine = wait_bits(xEventGroup, self, uxBitsToWaitFor, true, true, xTicksToWait);
    }
    kernel_leave(self);
    return with_mine;
}

void vEventGroupDelete(EventGroupHandle_t xEventGroup) {
    task_t *self = kernel_enter();
    for (task_t *task = xEventGroup->waiters.head; task != NULL; task = xEventGroup->waiters.head) {
        task->event.bits = 0;
        task->event.satisfied = true;
        kernel_wake(task);
    }
    kernel_leave(self);
    if (!xEventGroup->is_static) {
        free(xEventGroup);
    }
}
