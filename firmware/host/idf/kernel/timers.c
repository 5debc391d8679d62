/* SPDX-License-Identifier: Apache-2.0 */
/* Software timers on the tick grid. As in FreeRTOS they belong to the task "Tmr Svc": calls put commands into
 * its queue, and it alone starts, stops, calls back and frees. So a timer that is deleted in its own
 * callback, or during it, lives until the callback has returned. */
#include "freertos/timers.h"

#include <stdlib.h>
#include <string.h>

#include "queue.h"
#include "strict.h"

struct tmrTimerControl {
    const char *name;
    void *id;
    TimerCallbackFunction_t callback;
    TickType_t period;
    int64_t expiry; /* tick */
    bool reload;
    bool active;
    bool is_static;
    struct tmrTimerControl *next;
};

_Static_assert(sizeof(struct tmrTimerControl) <= sizeof(StaticTimer_t), "StaticTimer_t is too small");

typedef struct {
    BaseType_t id; /* tmrCOMMAND_ */
    union {
        struct {
            TimerHandle_t timer;
            TickType_t value;
        };
        struct {
            PendedFunction_t function;
            void *argument;
            uint32_t number;
        };
    };
} command_t;

static pthread_once_t s_once = PTHREAD_ONCE_INIT;
static QueueHandle_t s_commands;
static TaskHandle_t s_service_task;
static TimerHandle_t s_active; /* those that run, the first to expire first */

static void unlink_timer(TimerHandle_t timer) {
    TimerHandle_t *link = &s_active;
    while (*link != NULL && *link != timer) {
        link = &(*link)->next;
    }
    if (*link == timer) {
        *link = timer->next;
    }
}

static void link_timer(TimerHandle_t timer, int64_t expiry) {
    timer->expiry = expiry;
    TimerHandle_t *link = &s_active;
    while (*link != NULL && (*link)->expiry <= expiry) {
        link = &(*link)->next;
    }
    timer->next = *link;
    *link = timer;
}

/* Takes an expired timer off the list, or starts its next period, and calls back; each period that was missed
 * has its call. */
static void expire(TimerHandle_t timer, int64_t now) {
    int calls = 1;
    task_t *self = kernel_enter();
    unlink_timer(timer);
    if (timer->reload) {
        int64_t next = timer->expiry + timer->period;
        for (; next <= now; next += timer->period) {
            calls++;
        }
        link_timer(timer, next);
    } else {
        timer->active = false;
    }
    kernel_leave(self);
    while (calls-- > 0) {
        timer->callback(timer);
    }
}

/* In the service task: waits for a command or for the first expiry. Returns a timer that has expired. */
static TimerHandle_t wait_for_work(void) {
    task_t *self = kernel_enter();
    TimerHandle_t expired = NULL;
    for (;;) {
        expired = s_active != NULL && s_active->expiry <= tick_count_now() ? s_active : NULL;
        if (expired != NULL || s_commands->count > 0) {
            break;
        }
        kernel_block(self, &s_commands->receivers, s_active != NULL ? s_active->expiry * TICK_US : NEVER_US);
    }
    kernel_leave(self);
    return expired;
}

/* The command's tick is that of the call, which may be a while ago. */
static void run_from(TimerHandle_t timer, TickType_t called_at) {
    int64_t now = tick_count_now();
    int64_t expiry = now - (TickType_t)((TickType_t)now - called_at) + timer->period;
    task_t *self = kernel_enter();
    timer->active = true;
    link_timer(timer, expiry);
    kernel_leave(self);
    if (expiry <= now) {
        expire(timer, now);
    }
}

static void stop(TimerHandle_t timer) {
    task_t *self = kernel_enter();
    timer->active = false;
    kernel_leave(self);
}

static void change_period(TimerHandle_t timer, TickType_t period) {
    configASSERT(period > 0);
    task_t *self = kernel_enter();
    timer->period = period;
    timer->active = true;
    link_timer(timer, tick_count_now() + period);
    kernel_leave(self);
}

static void command_timer(const command_t *command) {
    TimerHandle_t timer = command->timer;
    task_t *self = kernel_enter();
    unlink_timer(timer);
    kernel_leave(self);
    switch (command->id) {
    case tmrCOMMAND_START:
    case tmrCOMMAND_START_FROM_ISR:
    case tmrCOMMAND_RESET:
    case tmrCOMMAND_RESET_FROM_ISR:
        run_from(timer, command->value);
        break;
    case tmrCOMMAND_CHANGE_PERIOD:
    case tmrCOMMAND_CHANGE_PERIOD_FROM_ISR:
        change_period(timer, command->value);
        break;
    default:
        stop(timer);
    }
    if (command->id == tmrCOMMAND_DELETE && !timer->is_static) {
        free(timer);
    }
}

static void service(void *argument) {
    (void)argument;
    for (;;) {
        TimerHandle_t expired = wait_for_work();
        if (expired != NULL) {
            expire(expired, tick_count_now());
        }
        command_t command;
        while (xQueueReceive(s_commands, &command, 0) == pdPASS) {
            if (command.id < 0) {
                command.function(command.argument, command.number);
            } else {
                command_timer(&command);
            }
        }
    }
}

static void start_service(void) {
    strict_excuse(true);
    s_commands = xQueueCreate(CONFIG_FREERTOS_TIMER_QUEUE_LENGTH, sizeof(command_t));
    configASSERT(s_commands != NULL);
    BaseType_t created = xTaskCreate(service, "Tmr Svc", CONFIG_FREERTOS_TIMER_TASK_STACK_DEPTH, NULL,
                                     CONFIG_FREERTOS_TIMER_TASK_PRIORITY, &s_service_task);
    configASSERT(created == pdPASS);
    strict_excuse(false);
}

static TimerHandle_t fill(TimerHandle_t timer, const char *name, TickType_t period, BaseType_t reload,
                          void *id, TimerCallbackFunction_t callback) {
    configASSERT(period > 0);
    pthread_once(&s_once, start_service);
    memset(timer, 0, sizeof *timer);
    timer->name = name;
    timer->period = period;
    timer->reload = reload != pdFALSE;
    timer->id = id;
    timer->callback = callback;
    return timer;
}

TimerHandle_t xTimerCreate(const char *const pcTimerName, const TickType_t xTimerPeriodInTicks,
                           const BaseType_t xAutoReload, void *const pvTimerID,
                           TimerCallbackFunction_t pxCallbackFunction) {
    TimerHandle_t timer = malloc(sizeof *timer);
    return timer == NULL
               ? NULL
               : fill(timer, pcTimerName, xTimerPeriodInTicks, xAutoReload, pvTimerID, pxCallbackFunction);
}

TimerHandle_t xTimerCreateStatic(const char *const pcTimerName, const TickType_t xTimerPeriodInTicks,
                                 const BaseType_t xAutoReload, void *const pvTimerID,
                                 TimerCallbackFunction_t pxCallbackFunction, StaticTimer_t *pxTimerBuffer) {
    configASSERT(pxTimerBuffer != NULL);
    TimerHandle_t timer = fill((TimerHandle_t)(void *)pxTimerBuffer, pcTimerName, xTimerPeriodInTicks,
                               xAutoReload, pvTimerID, pxCallbackFunction);
    timer->is_static = true;
    return timer;
}

static BaseType_t send(const command_t *command, TickType_t ticks) {
    pthread_once(&s_once, start_service);
    return xQueueSendToBack(s_commands, command, ticks);
}

static BaseType_t send_from_isr(const command_t *command, BaseType_t *woken) {
    pthread_once(&s_once, start_service);
    return xQueueSendToBackFromISR(s_commands, command, woken);
}

BaseType_t xTimerGenericCommand(TimerHandle_t xTimer, const BaseType_t xCommandID,
                                const TickType_t xOptionalValue, BaseType_t *const pxHigherPriorityTaskWoken,
                                const TickType_t xTicksToWait) {
    configASSERT(xTimer != NULL);
    command_t command = {.id = xCommandID, .timer = xTimer, .value = xOptionalValue};
    return xCommandID < tmrFIRST_FROM_ISR_COMMAND ? send(&command, xTicksToWait)
                                                  : send_from_isr(&command, pxHigherPriorityTaskWoken);
}

BaseType_t xTimerPendFunctionCall(PendedFunction_t xFunctionToPend, void *pvParameter1, uint32_t ulParameter2,
                                  TickType_t xTicksToWait) {
    command_t command = {.id = tmrCOMMAND_EXECUTE_CALLBACK,
                         .function = xFunctionToPend,
                         .argument = pvParameter1,
                         .number = ulParameter2};
    return send(&command, xTicksToWait);
}

BaseType_t xTimerPendFunctionCallFromISR(PendedFunction_t xFunctionToPend, void *pvParameter1,
                                         uint32_t ulParameter2, BaseType_t *pxHigherPriorityTaskWoken) {
    command_t command = {.id = tmrCOMMAND_EXECUTE_CALLBACK_FROM_ISR,
                         .function = xFunctionToPend,
                         .argument = pvParameter1,
                         .number = ulParameter2};
    return send_from_isr(&command, pxHigherPriorityTaskWoken);
}

TaskHandle_t xTimerGetTimerDaemonTaskHandle(void) {
    pthread_once(&s_once, start_service);
    return s_service_task;
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

void vTimerSetReloadMode(TimerHandle_t xTimer, const BaseType_t xAutoReload) {
    task_t *self = kernel_enter();
    xTimer->reload = xAutoReload != pdFALSE;
    kernel_leave(self);
}

BaseType_t xTimerGetReloadMode(TimerHandle_t xTimer) {
    task_t *self = kernel_enter();
    bool reload = xTimer->reload;
    kernel_leave(self);
    return reload ? pdTRUE : pdFALSE;
}

void *pvTimerGetTimerID(const TimerHandle_t xTimer) {
    task_t *self = kernel_enter();
    void *id = xTimer->id;
    kernel_leave(self);
    return id;
}

void vTimerSetTimerID(TimerHandle_t xTimer, void *pvNewID) {
    task_t *self = kernel_enter();
    xTimer->id = pvNewID;
    kernel_leave(self);
}

const char *pcTimerGetName(TimerHandle_t xTimer) {
    return xTimer->name;
}

TickType_t xTimerGetPeriod(TimerHandle_t xTimer) {
    task_t *self = kernel_enter();
    TickType_t period = xTimer->period;
    kernel_leave(self);
    return period;
}
