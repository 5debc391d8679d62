/* SPDX-License-Identifier: Apache-2.0 */
/* Types and port macros of the esp32 port. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "esp_system.h"
#include "esp_timer.h"
#include "freertos/FreeRTOSConfig.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef uint8_t StackType_t;
typedef int BaseType_t;
typedef unsigned int UBaseType_t;
typedef uint32_t TickType_t;

#define portMAX_DELAY ((TickType_t)0xffffffffUL)
#define portTICK_PERIOD_MS ((TickType_t)1000 / configTICK_RATE_HZ)
#define portNUM_PROCESSORS configNUMBER_OF_CORES
#define portBYTE_ALIGNMENT 16
#define portGET_RUN_TIME_COUNTER_VALUE() ((configRUN_TIME_COUNTER_TYPE)esp_timer_get_time())
#define portNOP() __asm__ volatile("nop")

/* A spinlock: the word is the kernel's priority-inheriting futex (owner's thread id), because pure spinning
 * deadlocks when the spinner outranks an owner that was preempted on the same core. Recursive, as on chips.
 */
typedef struct {
    uint32_t owner;   /* futex word, 0 = free */
    uint32_t count;   /* nesting, written by the owner only */
    uint32_t version; /* taken-and-given count; orders accesses for the sanitizers */
} portMUX_TYPE;
typedef portMUX_TYPE spinlock_t;

#define portMUX_INITIALIZER_UNLOCKED                                                                         \
    { .owner = 0, .count = 0, .version = 0 }
#define SPINLOCK_INITIALIZER portMUX_INITIALIZER_UNLOCKED
#define portMUX_FREE_VAL 0
#define portMUX_NO_TIMEOUT (-1)
#define portMUX_TRY_LOCK 0
#define portMUX_INITIALIZE(mux) (*(mux) = (portMUX_TYPE)portMUX_INITIALIZER_UNLOCKED)

void vPortEnterCritical(portMUX_TYPE *mux);
BaseType_t xPortEnterCriticalTimeout(portMUX_TYPE *mux, BaseType_t timeout);
void vPortExitCritical(portMUX_TYPE *mux);

#define portENTER_CRITICAL(mux) vPortEnterCritical(mux)
#define portTRY_ENTER_CRITICAL(mux, timeout) xPortEnterCriticalTimeout(mux, timeout)
#define portEXIT_CRITICAL(mux) vPortExitCritical(mux)
#define portENTER_CRITICAL_ISR(mux) vPortEnterCritical(mux)
#define portEXIT_CRITICAL_ISR(mux) vPortExitCritical(mux)
#define portENTER_CRITICAL_SAFE(mux) vPortEnterCritical(mux)
#define portEXIT_CRITICAL_SAFE(mux) vPortExitCritical(mux)
#define taskENTER_CRITICAL(mux) vPortEnterCritical(mux)
#define taskEXIT_CRITICAL(mux) vPortExitCritical(mux)
#define taskENTER_CRITICAL_ISR(mux) vPortEnterCritical(mux)
#define taskEXIT_CRITICAL_ISR(mux) vPortExitCritical(mux)

void vPortYield(void);
#define portYIELD() vPortYield()
#define taskYIELD() vPortYield()
/* With or without an argument; a woken thread runs by itself, nothing is left to do. */
#define portYIELD_FROM_ISR(...) ((void)0)

BaseType_t xPortGetCoreID(void);
BaseType_t xPortInIsrContext(void);
BaseType_t xPortInterruptedFromISRContext(void);

#ifdef __cplusplus
}
#endif
