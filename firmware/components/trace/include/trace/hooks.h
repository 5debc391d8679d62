/* SPDX-License-Identifier: Apache-2.0 */
/* FreeRTOS's trace macros: what the kernel tells the ring of trace.h.
 *
 * The build puts this header before the sources of ESP-IDF's component `freertos` (../../CMakeLists.txt), and
 * the host's kernel includes it. The macros are expanded in the middle of the scheduler, with a lock of the
 * kernel held and, on a chip, perhaps with the flash cache off: what they call takes no lock, lies in
 * internal RAM, and may be interrupted anywhere. While nothing is recorded each costs a read of
 * `trace_is_on`.
 *
 * The tick's interrupt is not recorded: four events a millisecond would be all that the ring holds.
 */
#pragma once

#include "sdkconfig.h"

#include "trace.h"

/* SystemView has definitions of its own of the same macros, and the SMP kernel has other variables: with
 * either of them the ring stays empty. */
#if !CONFIG_SYSVIEW_ENABLE && !CONFIG_APPTRACE_SV_ENABLE && !CONFIG_FREERTOS_SMP

/* What is read of the kernel's own structures. These are the names of ESP-IDF's kernel, V10.5.1; another
 * kernel defines its own before it includes this header. */
#ifndef TRACE_CURRENT_TASK
#define TRACE_CURRENT_TASK xTaskGetCurrentTaskHandle()
#define TRACE_PRIORITY_OF(task) ((task)->uxPriority)
#define TRACE_BASE_PRIORITY_OF(task) ((task)->uxBasePriority)
/* configUSE_TRACE_FACILITY, which keeps the type of a queue, is off. */
#define TRACE_KIND_OF(queue)                                                                                 \
    ((queue)->uxQueueType == queueQUEUE_IS_MUTEX ? TRACE_MUTEX                                               \
     : (queue)->uxItemSize != 0                  ? TRACE_QUEUE                                               \
     : (queue)->uxLength > 1                     ? TRACE_COUNTING                                            \
                                                 : TRACE_BINARY)
#define TRACE_NOTIFIED_TASK pxTCB
#define TRACE_IS_NOTIFIED(task, index) ((task)->ucNotifyState[(index)] == taskNOTIFICATION_RECEIVED)
#define TRACE_NOTIFIED_VALUE(task, index) ((task)->ulNotifiedValue[(index)])
#endif

/* As object_<n> names them (docs/explain/tracing.md). */
typedef enum {
    TRACE_MUTEX = 1,
    TRACE_RECURSIVE,
    TRACE_BINARY,
    TRACE_COUNTING,
    TRACE_QUEUE,
    TRACE_NOTIFICATION, /* the object is the task that is notified */
    TRACE_EVENT_GROUP,
} trace_object_kind_t;

#ifdef __cplusplus
extern "C" {
#endif

extern volatile uint32_t trace_is_on;

/* Something happened to this task. */
void trace_hook_task(trace_event_t event, const void *task, uint32_t base_priority, uint32_t argument);
/* The task that runs here waits for this object, takes from it, gives to it. */
void trace_hook_object(trace_event_t event, const void *object, trace_object_kind_t kind);
/* Its memory may have been another one's before. */
void trace_hook_new_task(const void *task);
void trace_hook_new_object(const void *object);
/* More is known of it than the kernel's structure shows. */
void trace_hook_object_is(const void *object, trace_object_kind_t kind);

#ifdef __cplusplus
}
#endif

#define TRACE_HOOK(call)                                                                                     \
    do {                                                                                                     \
        if (trace_is_on != 0) {                                                                              \
            call;                                                                                            \
        }                                                                                                    \
    } while (0)

#define TRACE_TASK(event, task, argument)                                                                    \
    do {                                                                                                     \
        if (trace_is_on != 0) {                                                                              \
            __auto_type trace_task_ = (task);                                                                \
            trace_hook_task((event), trace_task_, TRACE_BASE_PRIORITY_OF(trace_task_), (argument));          \
        }                                                                                                    \
    } while (0)

#define TRACE_OBJECT(event, queue) TRACE_HOOK(trace_hook_object((event), (queue), TRACE_KIND_OF(queue)))
#define TRACE_GROUP(event, group) TRACE_HOOK(trace_hook_object((event), (group), TRACE_EVENT_GROUP))
#define TRACE_NOTIFIED(event, task) TRACE_HOOK(trace_hook_object((event), (task), TRACE_NOTIFICATION))

/* tasks.c */
#define traceTASK_CREATE(pxNewTCB) TRACE_HOOK(trace_hook_new_task(pxNewTCB))
#define traceTASK_SWITCHED_IN() TRACE_TASK(TRACE_SWITCHED_IN, TRACE_CURRENT_TASK, 0)
#define traceTASK_SWITCHED_OUT() TRACE_TASK(TRACE_SWITCHED_OUT, TRACE_CURRENT_TASK, 0)
#define traceMOVED_TASK_TO_READY_STATE(pxTask) TRACE_TASK(TRACE_READY, pxTask, TRACE_PRIORITY_OF(pxTask))
#define traceTASK_DELAY() TRACE_TASK(TRACE_DELAYS, TRACE_CURRENT_TASK, 0)
#define traceTASK_DELAY_UNTIL(xTimeToWake) TRACE_TASK(TRACE_DELAYS, TRACE_CURRENT_TASK, 0)
#define traceTASK_SUSPEND(pxTask) TRACE_TASK(TRACE_SUSPENDED, pxTask, 0)
#define traceTASK_PRIORITY_INHERIT(pxTask, uxPriority_) TRACE_TASK(TRACE_INHERITS, pxTask, uxPriority_)
#define traceTASK_PRIORITY_DISINHERIT(pxTask, uxPriority_) TRACE_TASK(TRACE_DISINHERITS, pxTask, uxPriority_)

#define traceTASK_NOTIFY(uxIndex) TRACE_NOTIFIED(TRACE_GIVEN, TRACE_NOTIFIED_TASK)
#define traceTASK_NOTIFY_FROM_ISR(uxIndex) TRACE_NOTIFIED(TRACE_GIVEN, TRACE_NOTIFIED_TASK)
#define traceTASK_NOTIFY_GIVE_FROM_ISR(uxIndex) TRACE_NOTIFIED(TRACE_GIVEN, TRACE_NOTIFIED_TASK)
#define traceTASK_NOTIFY_TAKE_BLOCK(uxIndex) TRACE_NOTIFIED(TRACE_WAITS, TRACE_CURRENT_TASK)
#define traceTASK_NOTIFY_WAIT_BLOCK(uxIndex) TRACE_NOTIFIED(TRACE_WAITS, TRACE_CURRENT_TASK)
/* These two come after a time-out, too. */
#define traceTASK_NOTIFY_TAKE(uxIndex)                                                                       \
    do {                                                                                                     \
        if (trace_is_on != 0 && TRACE_NOTIFIED_VALUE(TRACE_CURRENT_TASK, uxIndex) != 0) {                    \
            trace_hook_object(TRACE_TAKEN, TRACE_CURRENT_TASK, TRACE_NOTIFICATION);                          \
        }                                                                                                    \
    } while (0)
#define traceTASK_NOTIFY_WAIT(uxIndex)                                                                       \
    do {                                                                                                     \
        if (trace_is_on != 0 && TRACE_IS_NOTIFIED(TRACE_CURRENT_TASK, uxIndex)) {                            \
            trace_hook_object(TRACE_TAKEN, TRACE_CURRENT_TASK, TRACE_NOTIFICATION);                          \
        }                                                                                                    \
    } while (0)

/* queue.c: queues, semaphores and mutexes */
#define traceQUEUE_CREATE(pxNewQueue_) TRACE_HOOK(trace_hook_new_object(pxNewQueue_))
#define traceBLOCKING_ON_QUEUE_RECEIVE(pxQueue_) TRACE_OBJECT(TRACE_WAITS, pxQueue_)
#define traceBLOCKING_ON_QUEUE_PEEK(pxQueue_) TRACE_OBJECT(TRACE_WAITS, pxQueue_)
#define traceBLOCKING_ON_QUEUE_SEND(pxQueue_) TRACE_OBJECT(TRACE_WAITS, pxQueue_)
#define traceQUEUE_SEND(pxQueue_) TRACE_OBJECT(TRACE_GIVEN, pxQueue_)
#define traceQUEUE_SEND_FROM_ISR(pxQueue_) TRACE_OBJECT(TRACE_GIVEN, pxQueue_)
#define traceQUEUE_GIVE_FROM_ISR(pxQueue_) TRACE_OBJECT(TRACE_GIVEN, pxQueue_)
#define traceQUEUE_RECEIVE(pxQueue_) TRACE_OBJECT(TRACE_TAKEN, pxQueue_)
#define traceQUEUE_RECEIVE_FROM_ISR(pxQueue_) TRACE_OBJECT(TRACE_TAKEN, pxQueue_)
#define traceQUEUE_SEMAPHORE_RECEIVE(pxQueue_) TRACE_OBJECT(TRACE_TAKEN, pxQueue_)
#define traceTAKE_MUTEX_RECURSIVE(pxMutex_) TRACE_HOOK(trace_hook_object_is((pxMutex_), TRACE_RECURSIVE))
#define traceGIVE_MUTEX_RECURSIVE(pxMutex_) TRACE_HOOK(trace_hook_object_is((pxMutex_), TRACE_RECURSIVE))

/* event_groups.c */
#define traceEVENT_GROUP_CREATE(xGroup) TRACE_HOOK(trace_hook_new_object(xGroup))
#define traceEVENT_GROUP_WAIT_BITS_BLOCK(xGroup, uxBits) TRACE_GROUP(TRACE_WAITS, xGroup)
#define traceEVENT_GROUP_SYNC_BLOCK(xGroup, uxSet, uxBits) TRACE_GROUP(TRACE_WAITS, xGroup)
#define traceEVENT_GROUP_SET_BITS(xGroup, uxBits) TRACE_GROUP(TRACE_GIVEN, xGroup)
#define traceEVENT_GROUP_WAIT_BITS_END(xGroup, uxBits, xTimedOut)                                            \
    do {                                                                                                     \
        if ((xTimedOut) == 0) {                                                                              \
            TRACE_GROUP(TRACE_TAKEN, xGroup);                                                                \
        }                                                                                                    \
    } while (0)
#define traceEVENT_GROUP_SYNC_END(xGroup, uxSet, uxBits, xTimedOut)                                          \
    do {                                                                                                     \
        if ((xTimedOut) == 0) {                                                                              \
            TRACE_GROUP(TRACE_TAKEN, xGroup);                                                                \
        }                                                                                                    \
    } while (0)

#endif
