/* SPDX-License-Identifier: Apache-2.0 */
/* Software timers: callbacks run in the task "Tmr Svc" on the tick grid. A call puts a command into its queue
 * of CONFIG_FREERTOS_TIMER_QUEUE_LENGTH, and fails when that is still full after the ticks given. */
#pragma once
#include "freertos/FreeRTOS.h"
#include "freertos/task.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tmrTimerControl *TimerHandle_t;
typedef void (*TimerCallbackFunction_t)(TimerHandle_t xTimer);
typedef void (*PendedFunction_t)(void *arg1, uint32_t arg2);

#define tmrCOMMAND_EXECUTE_CALLBACK_FROM_ISR ((BaseType_t)-2)
#define tmrCOMMAND_EXECUTE_CALLBACK ((BaseType_t)-1)
#define tmrCOMMAND_START ((BaseType_t)1)
#define tmrCOMMAND_RESET ((BaseType_t)2)
#define tmrCOMMAND_STOP ((BaseType_t)3)
#define tmrCOMMAND_CHANGE_PERIOD ((BaseType_t)4)
#define tmrCOMMAND_DELETE ((BaseType_t)5)
#define tmrFIRST_FROM_ISR_COMMAND ((BaseType_t)6)
#define tmrCOMMAND_START_FROM_ISR ((BaseType_t)6)
#define tmrCOMMAND_RESET_FROM_ISR ((BaseType_t)7)
#define tmrCOMMAND_STOP_FROM_ISR ((BaseType_t)8)
#define tmrCOMMAND_CHANGE_PERIOD_FROM_ISR ((BaseType_t)9)

TimerHandle_t xTimerCreate(const char *const pcTimerName, const TickType_t xTimerPeriodInTicks,
                           const BaseType_t xAutoReload, void *const pvTimerID,
                           TimerCallbackFunction_t pxCallbackFunction);
TimerHandle_t xTimerCreateStatic(const char *const pcTimerName, const TickType_t xTimerPeriodInTicks,
                                 const BaseType_t xAutoReload, void *const pvTimerID,
                                 TimerCallbackFunction_t pxCallbackFunction, StaticTimer_t *pxTimerBuffer);
void *pvTimerGetTimerID(const TimerHandle_t xTimer);
void vTimerSetTimerID(TimerHandle_t xTimer, void *pvNewID);
const char *pcTimerGetName(TimerHandle_t xTimer);
TickType_t xTimerGetPeriod(TimerHandle_t xTimer);
TickType_t xTimerGetExpiryTime(TimerHandle_t xTimer);
void vTimerSetReloadMode(TimerHandle_t xTimer, const BaseType_t xAutoReload);
BaseType_t xTimerGetReloadMode(TimerHandle_t xTimer);
BaseType_t xTimerIsTimerActive(TimerHandle_t xTimer);
TaskHandle_t xTimerGetTimerDaemonTaskHandle(void);
BaseType_t xTimerGenericCommand(TimerHandle_t xTimer, const BaseType_t xCommandID,
                                const TickType_t xOptionalValue, BaseType_t *const pxHigherPriorityTaskWoken,
                                const TickType_t xTicksToWait);
BaseType_t xTimerPendFunctionCall(PendedFunction_t xFunctionToPend, void *pvParameter1, uint32_t ulParameter2,
                                  TickType_t xTicksToWait);
BaseType_t xTimerPendFunctionCallFromISR(PendedFunction_t xFunctionToPend, void *pvParameter1,
                                         uint32_t ulParameter2, BaseType_t *pxHigherPriorityTaskWoken);

#define xTimerStart(timer, ticks)                                                                            \
    xTimerGenericCommand((timer), tmrCOMMAND_START, xTaskGetTickCount(), NULL, (ticks))
#define xTimerReset(timer, ticks)                                                                            \
    xTimerGenericCommand((timer), tmrCOMMAND_RESET, xTaskGetTickCount(), NULL, (ticks))
#define xTimerStop(timer, ticks) xTimerGenericCommand((timer), tmrCOMMAND_STOP, 0U, NULL, (ticks))
#define xTimerChangePeriod(timer, period, ticks)                                                             \
    xTimerGenericCommand((timer), tmrCOMMAND_CHANGE_PERIOD, (period), NULL, (ticks))
#define xTimerDelete(timer, ticks) xTimerGenericCommand((timer), tmrCOMMAND_DELETE, 0U, NULL, (ticks))
#define xTimerStartFromISR(timer, woken)                                                                     \
    xTimerGenericCommand((timer), tmrCOMMAND_START_FROM_ISR, xTaskGetTickCountFromISR(), (woken), 0U)
#define xTimerResetFromISR(timer, woken)                                                                     \
    xTimerGenericCommand((timer), tmrCOMMAND_RESET_FROM_ISR, xTaskGetTickCountFromISR(), (woken), 0U)
#define xTimerStopFromISR(timer, woken)                                                                      \
    xTimerGenericCommand((timer), tmrCOMMAND_STOP_FROM_ISR, 0, (woken), 0U)
#define xTimerChangePeriodFromISR(timer, period, woken)                                                      \
    xTimerGenericCommand((timer), tmrCOMMAND_CHANGE_PERIOD_FROM_ISR, (period), (woken), 0U)

#ifdef __cplusplus
}
#endif
