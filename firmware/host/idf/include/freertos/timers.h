/* SPDX-License-Identifier: Apache-2.0 */
/* Software timers: callbacks run in the task "Tmr Svc" on the tick grid. */
#pragma once
#include "freertos/FreeRTOS.h"
#include "freertos/task.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tmrTimerControl *TimerHandle_t;
typedef void (*TimerCallbackFunction_t)(TimerHandle_t xTimer);

#define tmrCOMMAND_START ((BaseType_t)1)
#define tmrCOMMAND_RESET ((BaseType_t)2)
#define tmrCOMMAND_STOP ((BaseType_t)3)
#define tmrCOMMAND_CHANGE_PERIOD ((BaseType_t)4)
#define tmrCOMMAND_DELETE ((BaseType_t)5)

TimerHandle_t xTimerCreate(const char *const pcTimerName, const TickType_t xTimerPeriodInTicks,
                           const BaseType_t xAutoReload, void *const pvTimerID,
                           TimerCallbackFunction_t pxCallbackFunction);
void *pvTimerGetTimerID(const TimerHandle_t xTimer);
void vTimerSetTimerID(TimerHandle_t xTimer, void *pvNewID);
const char *pcTimerGetName(TimerHandle_t xTimer);
TickType_t xTimerGetPeriod(TimerHandle_t xTimer);
TickType_t xTimerGetExpiryTime(TimerHandle_t xTimer);
BaseType_t xTimerIsTimerActive(TimerHandle_t xTimer);
/* Takes effect at once: the host has no command queue, so xTicksToWait is not used. */
BaseType_t xTimerGenericCommand(TimerHandle_t xTimer, const BaseType_t xCommandID,
                                const TickType_t xOptionalValue, BaseType_t *const pxHigherPriorityTaskWoken,
                                const TickType_t xTicksToWait);

#define xTimerStart(timer, ticks) xTimerGenericCommand((timer), tmrCOMMAND_START, 0, NULL, (ticks))
#define xTimerReset(timer, ticks) xTimerGenericCommand((timer), tmrCOMMAND_RESET, 0, NULL, (ticks))
#define xTimerStop(timer, ticks) xTimerGenericCommand((timer), tmrCOMMAND_STOP, 0, NULL, (ticks))
#define xTimerChangePeriod(timer, period, ticks)                                                             \
    xTimerGenericCommand((timer), tmrCOMMAND_CHANGE_PERIOD, (period), NULL, (ticks))
#define xTimerDelete(timer, ticks) xTimerGenericCommand((timer), tmrCOMMAND_DELETE, 0, NULL, (ticks))

#ifdef __cplusplus
}
#endif
