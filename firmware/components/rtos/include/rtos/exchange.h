/* SPDX-License-Identifier: Apache-2.0 */
/* What one task gives and another one waits for: the primitives of FreeRTOS behind one face, so that the same
 * rounds (rtos/pair.h) can be played with each. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "esp_err.h"
#include "freertos/FreeRTOS.h"
#include "freertos/event_groups.h"
#include "freertos/queue.h"
#include "freertos/semphr.h"
#include "freertos/task.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    RTOS_EXCHANGE_SEMAPHORE,    /* binary */
    RTOS_EXCHANGE_NOTIFICATION, /* xTaskNotifyGive, ulTaskNotifyTake */
    RTOS_EXCHANGE_QUEUE,        /* of one message */
    RTOS_EXCHANGE_MUTEX,        /* rtos_resource_create(): the giver holds it and inherits */
    RTOS_EXCHANGE_EVENT_GROUP,  /* one bit */
    RTOS_EXCHANGE_SPINLOCK,     /* the giver is in a critical section, the taker spins to enter it */
    RTOS_EXCHANGE_YIELD,        /* taskYIELD between tasks of one priority on one core */
    RTOS_EXCHANGE_RESUME,       /* vTaskResume of a task that has suspended itself */
} rtos_exchange_type_t;

/* The first six, as choices of a parameter. */
extern const char *const rtos_exchange_primitives[];

enum { RTOS_MESSAGE_MAX_BYTES = 64 };

typedef struct rtos_exchange_kind rtos_exchange_kind_t;

typedef struct {
    /* Set these before rtos_exchange_create(). */
    rtos_exchange_type_t type;
    size_t message_bytes; /* of a queue; 0: 4 */

    TaskHandle_t taker; /* set by the taker before anything is given */

    const rtos_exchange_kind_t *kind;
    QueueHandle_t queue; /* semaphore, mutex, queue */
    EventGroupHandle_t group;
    portMUX_TYPE lock;
    atomic_bool held;     /* the lock, by the giver */
    atomic_bool entering; /* the taker is on its way into it */
    atomic_bool turn;     /* the taker's */
    uint8_t sent[RTOS_MESSAGE_MAX_BYTES];
    uint8_t received[RTOS_MESSAGE_MAX_BYTES];
} rtos_exchange_t;

struct rtos_exchange_kind {
    bool (*create)(rtos_exchange_t *exchange); /* NULL: nothing to make */
    bool (*hold)(
        rtos_exchange_t *exchange); /* giver: whatever there is to take is not there, or is its own */
    bool (*waiting)(const rtos_exchange_t *exchange); /* giver: the taker, which has arrived, waits */
    bool (*meet)(
        rtos_exchange_t *exchange); /* giver, in place of both, once the taker has arrived; else NULL */
    void (*give)(rtos_exchange_t *exchange);
    bool (*take)(rtos_exchange_t *exchange, TickType_t ticks); /* false: not within that time */
    void (*put_back)(rtos_exchange_t *exchange);               /* taker, what it has; NULL: it stays taken */
    bool give_again; /* giving may miss a taker that did not wait yet, and does no harm when repeated */
};

/* Returns ESP_ERR_NO_MEM. */
esp_err_t rtos_exchange_create(rtos_exchange_t *exchange);
void rtos_exchange_delete(rtos_exchange_t *exchange);

#ifdef __cplusplus
}
#endif
