/* SPDX-License-Identifier: Apache-2.0 */
/* Software timers on the tick grid, called back by the task "Tmr Svc" in order of expiry. */
#include "freertos/timers.h"

#include <stdlib.h>

#include "kernel.h"

struct tmrTimerControl {
    const char *name;
    void *id;
    TimerCallbackFunction_t callback;
    TickType_t period;
    int64_t expiry; /* tick */
    bool reload;
    bool active;
    struct tmrTimerControl *next;
};

static pthread_once_t s_once = PTHREAD_ONCE_INIT;
static TimerHandle_t s_active;
static wait_list_t s_service;

static void unlink_timer(TimerHandle_t timer) {
    TimerHandle_t *link = &s_active;
    while (*link != NULL && *link != timer) {
        link = &(*link)->next;
    }
    if (*link == timer) {
        *link = timer->next;
    }
    timer->active = false;
}

static void link_timer(TimerHandle_t timer, int64_t expiry) {
    unlink_timer(timer);
    timer->expiry = expiry;
    timer->active = true;
    TimerHandle_t *link = &s_active;
    while (*link != NULL && (*link)->expiry <= expiry) {
        link = &(*link)->next;
    }
    timer->next = *link;
    *link = timer;
    kernel_wake_all(&s_service);
}

/* In the kernel: waits for the first expiry and takes the timer off the list. */
static TimerHandle_t wait_for_expired(task_t *self) {
    while (s_active == NULL || s_active->expiry > tick_count_now()) {
        kernel_block(self, &s_service, s_active != NULL ? s_active->expiry * TICK_US : NEVER_US);
    }
    TimerHandle_t timer = s_active;
    unlink_timer(timer);
    if (timer->reload) {
        link_timer(timer, timer->expiry + timer->period);
    }
    return timer;
}

static void service(void *argument) {
    (void)argument;
    for (;;) {
        task_t *self = kernel_enter();
        TimerHandle_t timer = wait_for_expired(self);
        TimerCallbackFunction_t callback = timer->callback;
        kernel_leave(self);
        callback(timer);
    }
}

static void start_service(void) {
    (void)xTaskCreate(service, "Tmr Svc", CONFIG_FREERTOS_TIMER_TASK_STACK_DEPTH, NULL,
                      CONFIG_FREERTOS_TIMER_TASK_PRIORITY, NULL);
}

TimerHandle_t xTimerCreate(const char *const pcTimerName, const TickType_t xTimerPeriodInTicks,
                           const BaseType_t xAutoReload, void *const pvTimerID,
                           TimerCallbackFunction_t pxCallbackFunction) {
    configASSERT(xTimerPeriodInTicks > 0);
    pthread_once(&s_once, start_service);
    TimerHandle_t timer = calloc(1, sizeof *timer);
    if (timer != NULL) {
        timer->name = pcTimerName;
        timer->period = xTimerPeriodInTicks;
        timer->reload = xAutoReload != pdFALSE;
        timer->id = pvTimerID;
        timer->callback = pxCallbackFunction;
    }
    return timer;
}

BaseType_t xTimerGenericCommand(TimerHandle_t xTimer, const BaseType_t xCommandID,
                                const TickType_t xOptionalValue, BaseType_t *const pxHigherPriorityTaskWoken,
                                const TickType_t xTicksToWait) {
    (void)pxHigherPriorityTaskWoken;
    (void)xTicksToWait;
    task_t *self = kernel_enter();
    if (xCommandID == tmrCOMMAND_CHANGE_PERIOD) {
        configASSERT(xOptionalValue > 0);
        xTimer->period = xOptionalValue;
    }
    if (xCommandID == tmrCOMMAND_STOP || xCommandID == tmrCOMMAND_DELETE) {
        unlink_timer(xTimer);
    } else {
        link_timer(xTimer, tick_count_now() + xTimer->period);
    }
    kernel_leave(self);
    if (xCommandID == tmrCOMMAND_DELETE) {
        free(xTimer);
    }
    return pdPASS;
}

BaseType_t xTimerIsTimerActive(TimerHandle_t xTimer) {
    task_t *self = kernel_enter();
    bool active = xTimer->active;
    kernel_leave(self);
    return active ? pdTRUE : pdFALSE;
}

TickType_t xTimerGetExpiryTime(TimerHandle_t xTimer) {
    task_t *self = kernel_enter();
    TickType_t expiry = (TickType_t)xTimer->expiry;
    kernel_leave(self);
    return expiry;
}

void *pvTimerGetTimerID(const TimerHandle_t xTimer) {
    return xTimer->id;
}

void vTimerSetTimerID(TimerHandle_t xTimer, void *pvNewID) {
    xTimer->id = pvNewID;
}

const char *pcTimerGetName(TimerHandle_t xTimer) {
    return xTimer->name;
}

TickType_t xTimerGetPeriod(TimerHandle_t xTimer) {
    return xTimer->period;
}
