/* SPDX-License-Identifier: Apache-2.0 */
/* Direct-to-task notifications. */
#include "kernel.h"

/* In the kernel. False when the action refuses to overwrite. */
static bool apply(task_t *task, uint32_t value, eNotifyAction action) {
    switch (action) {
    case eSetBits:
        task->notify_value |= value;
        return true;
    case eIncrement:
        task->notify_value++;
        return true;
    case eSetValueWithoutOverwrite:
        if (task->notify_pending) {
            return false;
        }
        task->notify_value = value;
        return true;
    case eSetValueWithOverwrite:
        task->notify_value = value;
        return true;
    case eNoAction:
    default:
        return true;
    }
}

BaseType_t xTaskGenericNotify(TaskHandle_t xTaskToNotify, UBaseType_t uxIndexToNotify, uint32_t ulValue,
                              eNotifyAction eAction, uint32_t *pulPreviousNotificationValue) {
    configASSERT(uxIndexToNotify < configTASK_NOTIFICATION_ARRAY_ENTRIES && xTaskToNotify != NULL);
    task_t *self = kernel_enter();
    if (pulPreviousNotificationValue != NULL) {
        *pulPreviousNotificationValue = xTaskToNotify->notify_value;
    }
    bool done = apply(xTaskToNotify, ulValue, eAction);
    traceTASK_NOTIFY(uxIndexToNotify);
    xTaskToNotify->notify_pending = true;
    kernel_wake_all(&xTaskToNotify->notify_waiter);
    kernel_leave(self);
    return done ? pdPASS : pdFAIL;
}

BaseType_t xTaskGenericNotifyFromISR(TaskHandle_t xTaskToNotify, UBaseType_t uxIndexToNotify,
                                     uint32_t ulValue, eNotifyAction eAction,
                                     uint32_t *pulPreviousNotificationValue,
                                     BaseType_t *pxHigherPriorityTaskWoken) {
    BaseType_t result =
        xTaskGenericNotify(xTaskToNotify, uxIndexToNotify, ulValue, eAction, pulPreviousNotificationValue);
    kernel_tell_woken(pxHigherPriorityTaskWoken);
    return result;
}

void vTaskGenericNotifyGiveFromISR(TaskHandle_t xTaskToNotify, UBaseType_t uxIndexToNotify,
                                   BaseType_t *pxHigherPriorityTaskWoken) {
    (void)xTaskGenericNotify(xTaskToNotify, uxIndexToNotify, 0, eIncrement, NULL);
    kernel_tell_woken(pxHigherPriorityTaskWoken);
}

static void wait_for_notification(task_t *self, TickType_t ticks) {
    int64_t deadline_us = ticks_deadline_us(ticks);
    if (ticks > 0 && !self->notify_pending) {
        traceTASK_NOTIFY_WAIT_BLOCK(0);
    }
    while (ticks > 0 && !self->notify_pending && kernel_block(self, &self->notify_waiter, deadline_us)) {
    }
}

BaseType_t xTaskGenericNotifyWait(UBaseType_t uxIndexToWaitOn, uint32_t ulBitsToClearOnEntry,
                                  uint32_t ulBitsToClearOnExit, uint32_t *pulNotificationValue,
                                  TickType_t xTicksToWait) {
    configASSERT(uxIndexToWaitOn < configTASK_NOTIFICATION_ARRAY_ENTRIES);
    task_t *self = kernel_enter();
    if (!self->notify_pending) {
        self->notify_value &= ~ulBitsToClearOnEntry;
        wait_for_notification(self, xTicksToWait);
    }
    if (pulNotificationValue != NULL) {
        *pulNotificationValue = self->notify_value;
    }
    traceTASK_NOTIFY_WAIT(uxIndexToWaitOn);
    bool received = self->notify_pending;
    if (received) {
        self->notify_value &= ~ulBitsToClearOnExit;
    }
    self->notify_pending = false;
    kernel_leave(self);
    return received ? pdTRUE : pdFALSE;
}

uint32_t ulTaskGenericNotifyTake(UBaseType_t uxIndexToWaitOn, BaseType_t xClearCountOnExit,
                                 TickType_t xTicksToWait) {
    configASSERT(uxIndexToWaitOn < configTASK_NOTIFICATION_ARRAY_ENTRIES);
    task_t *self = kernel_enter();
    if (self->notify_value == 0) {
        self->notify_pending = false;
        wait_for_notification(self, xTicksToWait);
    }
    traceTASK_NOTIFY_TAKE(uxIndexToWaitOn);
    uint32_t value = self->notify_value;
    if (value != 0) {
        self->notify_value = xClearCountOnExit ? 0 : value - 1;
    }
    self->notify_pending = false;
    kernel_leave(self);
    return value;
}

BaseType_t xTaskGenericNotifyStateClear(TaskHandle_t xTask, UBaseType_t uxIndexToClear) {
    configASSERT(uxIndexToClear < configTASK_NOTIFICATION_ARRAY_ENTRIES);
    task_t *self = kernel_enter();
    task_t *task = xTask != NULL ? xTask : self;
    bool pending = task->notify_pending;
    task->notify_pending = false;
    kernel_leave(self);
    return pending ? pdPASS : pdFAIL;
}

uint32_t ulTaskGenericNotifyValueClear(TaskHandle_t xTask, UBaseType_t uxIndexToClear,
                                       uint32_t ulBitsToClear) {
    configASSERT(uxIndexToClear < configTASK_NOTIFICATION_ARRAY_ENTRIES);
    task_t *self = kernel_enter();
    task_t *task = xTask != NULL ? xTask : self;
    uint32_t value = task->notify_value;
    task->notify_value &= ~ulBitsToClear;
    kernel_leave(self);
    return value;
}
