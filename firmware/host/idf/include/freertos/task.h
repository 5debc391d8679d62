/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "freertos/FreeRTOS.h"
#include "freertos/idf_additions.h"

#ifdef __cplusplus
extern "C" {
#endif

#define tskKERNEL_VERSION_NUMBER "V10.5.1"
#define tskDEFAULT_INDEX_TO_NOTIFY (0)
#define tskIDLE_PRIORITY ((UBaseType_t)0U)
#define tskNO_AFFINITY ((BaseType_t)0x7FFFFFFF)
#define taskVALID_CORE_ID(xCoreID) ((xCoreID) >= 0 && (xCoreID) < configNUMBER_OF_CORES)

#define taskSCHEDULER_SUSPENDED ((BaseType_t)0)
#define taskSCHEDULER_NOT_STARTED ((BaseType_t)1)
#define taskSCHEDULER_RUNNING ((BaseType_t)2)

typedef enum { eRunning = 0, eReady, eBlocked, eSuspended, eDeleted, eInvalid } eTaskState;

typedef enum {
    eNoAction = 0,
    eSetBits,
    eIncrement,
    eSetValueWithOverwrite,
    eSetValueWithoutOverwrite
} eNotifyAction;

BaseType_t xTaskCreate(TaskFunction_t pxTaskCode, const char *const pcName,
                       const configSTACK_DEPTH_TYPE usStackDepth, void *const pvParameters,
                       UBaseType_t uxPriority, TaskHandle_t *const pxCreatedTask);
TaskHandle_t xTaskCreateStatic(TaskFunction_t pxTaskCode, const char *const pcName,
                               const uint32_t ulStackDepth, void *const pvParameters, UBaseType_t uxPriority,
                               StackType_t *const puxStackBuffer, StaticTask_t *const pxTaskBuffer);
void vTaskDelete(TaskHandle_t xTaskToDelete);

void vTaskDelay(const TickType_t xTicksToDelay);
BaseType_t xTaskDelayUntil(TickType_t *const pxPreviousWakeTime, const TickType_t xTimeIncrement);
#define vTaskDelayUntil(pxPreviousWakeTime, xTimeIncrement)                                                  \
    ((void)xTaskDelayUntil((pxPreviousWakeTime), (xTimeIncrement)))
BaseType_t xTaskAbortDelay(TaskHandle_t xTask);

UBaseType_t uxTaskPriorityGet(const TaskHandle_t xTask);
void vTaskPrioritySet(TaskHandle_t xTask, UBaseType_t uxNewPriority);
void vTaskSuspend(TaskHandle_t xTaskToSuspend);
void vTaskResume(TaskHandle_t xTaskToResume);
BaseType_t xTaskResumeFromISR(TaskHandle_t xTaskToResume);
void vTaskSuspendAll(void);
BaseType_t xTaskResumeAll(void);

TickType_t xTaskGetTickCount(void);
TickType_t xTaskGetTickCountFromISR(void);
UBaseType_t uxTaskGetNumberOfTasks(void);
char *pcTaskGetName(TaskHandle_t xTaskToQuery);
TaskHandle_t xTaskGetHandle(const char *pcNameToQuery);
TaskHandle_t xTaskGetCurrentTaskHandle(void);
BaseType_t xTaskGetSchedulerState(void);
eTaskState eTaskGetState(TaskHandle_t xTask);

typedef struct xTASK_STATUS {
    TaskHandle_t xHandle;
    const char *pcTaskName;
    UBaseType_t xTaskNumber;
    eTaskState eCurrentState;
    UBaseType_t uxCurrentPriority;
    UBaseType_t uxBasePriority;
    configRUN_TIME_COUNTER_TYPE ulRunTimeCounter; /* µs of CPU */
    StackType_t *pxStackBase;
    configSTACK_DEPTH_TYPE usStackHighWaterMark;
} TaskStatus_t;

/* All tasks; there are no idle tasks. 0 where the array is too small. */
UBaseType_t uxTaskGetSystemState(TaskStatus_t *const pxTaskStatusArray, const UBaseType_t uxArraySize,
                                 configRUN_TIME_COUNTER_TYPE *const pulTotalRunTime);
UBaseType_t uxTaskGetStackHighWaterMark(TaskHandle_t xTask);
configSTACK_DEPTH_TYPE uxTaskGetStackHighWaterMark2(TaskHandle_t xTask);
/* Of the core that the caller runs on. */
configRUN_TIME_COUNTER_TYPE ulTaskGetIdleRunTimeCounter(void);
configRUN_TIME_COUNTER_TYPE ulTaskGetIdleRunTimePercent(void);
void vTaskSetThreadLocalStoragePointer(TaskHandle_t xTaskToSet, BaseType_t xIndex, void *pvValue);
void *pvTaskGetThreadLocalStoragePointer(TaskHandle_t xTaskToQuery, BaseType_t xIndex);

BaseType_t xTaskGenericNotify(TaskHandle_t xTaskToNotify, UBaseType_t uxIndexToNotify, uint32_t ulValue,
                              eNotifyAction eAction, uint32_t *pulPreviousNotificationValue);
BaseType_t xTaskGenericNotifyFromISR(TaskHandle_t xTaskToNotify, UBaseType_t uxIndexToNotify,
                                     uint32_t ulValue, eNotifyAction eAction,
                                     uint32_t *pulPreviousNotificationValue,
                                     BaseType_t *pxHigherPriorityTaskWoken);
void vTaskGenericNotifyGiveFromISR(TaskHandle_t xTaskToNotify, UBaseType_t uxIndexToNotify,
                                   BaseType_t *pxHigherPriorityTaskWoken);
BaseType_t xTaskGenericNotifyWait(UBaseType_t uxIndexToWaitOn, uint32_t ulBitsToClearOnEntry,
                                  uint32_t ulBitsToClearOnExit, uint32_t *pulNotificationValue,
                                  TickType_t xTicksToWait);
uint32_t ulTaskGenericNotifyTake(UBaseType_t uxIndexToWaitOn, BaseType_t xClearCountOnExit,
                                 TickType_t xTicksToWait);
BaseType_t xTaskGenericNotifyStateClear(TaskHandle_t xTask, UBaseType_t uxIndexToClear);
uint32_t ulTaskGenericNotifyValueClear(TaskHandle_t xTask, UBaseType_t uxIndexToClear,
                                       uint32_t ulBitsToClear);

#define xTaskNotifyIndexed(task, index, value, action) xTaskGenericNotify(task, index, value, action, NULL)
#define xTaskNotify(task, value, action) xTaskNotifyIndexed(task, tskDEFAULT_INDEX_TO_NOTIFY, value, action)
#define xTaskNotifyAndQueryIndexed(task, index, value, action, previous)                                     \
    xTaskGenericNotify(task, index, value, action, previous)
#define xTaskNotifyAndQuery(task, value, action, previous)                                                   \
    xTaskGenericNotify(task, tskDEFAULT_INDEX_TO_NOTIFY, value, action, previous)
#define xTaskNotifyFromISR(task, value, action, woken)                                                       \
    xTaskGenericNotifyFromISR(task, tskDEFAULT_INDEX_TO_NOTIFY, value, action, NULL, woken)
#define xTaskNotifyGiveIndexed(task, index) xTaskGenericNotify(task, index, 0, eIncrement, NULL)
#define xTaskNotifyGive(task) xTaskNotifyGiveIndexed(task, tskDEFAULT_INDEX_TO_NOTIFY)
#define vTaskNotifyGiveFromISR(task, woken)                                                                  \
    vTaskGenericNotifyGiveFromISR(task, tskDEFAULT_INDEX_TO_NOTIFY, woken)
#define xTaskNotifyWaitIndexed(index, entry, exit, value, ticks)                                             \
    xTaskGenericNotifyWait(index, entry, exit, value, ticks)
#define xTaskNotifyWait(entry, exit, value, ticks)                                                           \
    xTaskGenericNotifyWait(tskDEFAULT_INDEX_TO_NOTIFY, entry, exit, value, ticks)
#define ulTaskNotifyTakeIndexed(index, clear, ticks) ulTaskGenericNotifyTake(index, clear, ticks)
#define ulTaskNotifyTake(clear, ticks) ulTaskGenericNotifyTake(tskDEFAULT_INDEX_TO_NOTIFY, clear, ticks)
#define xTaskNotifyStateClear(task) xTaskGenericNotifyStateClear(task, tskDEFAULT_INDEX_TO_NOTIFY)
#define ulTaskNotifyValueClear(task, bits)                                                                   \
    ulTaskGenericNotifyValueClear(task, tskDEFAULT_INDEX_TO_NOTIFY, bits)

#ifdef __cplusplus
}
#endif
