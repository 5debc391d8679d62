/* SPDX-License-Identifier: Apache-2.0 */
#include "rtos/exchange.h"

#include "rtos/resource.h"
#include "spinlock.h"

enum { TAKE_BIT = 1, DEFAULT_MESSAGE_BYTES = 4 };

const char *const rtos_exchange_primitives[] = {"semaphore",   "notification", "queue", "mutex",
                                                "event_group", "spinlock",     NULL};

static bool is_blocked(const rtos_exchange_t *exchange) {
    return eTaskGetState(exchange->taker) == eBlocked;
}

/* ---- binary semaphore ---- */

static bool create_semaphore(rtos_exchange_t *exchange) {
    exchange->queue = xSemaphoreCreateBinary();
    return exchange->queue != NULL;
}

static bool empty_semaphore(rtos_exchange_t *exchange) {
    (void)xSemaphoreTake(exchange->queue, 0);
    return true;
}

static void give_semaphore(rtos_exchange_t *exchange) {
    xSemaphoreGive(exchange->queue);
}

static bool take_semaphore(rtos_exchange_t *exchange, TickType_t ticks) {
    return xSemaphoreTake(exchange->queue, ticks) == pdTRUE;
}

/* ---- mutex: given and taken alike, but held before ---- */

static bool create_mutex(rtos_exchange_t *exchange) {
    exchange->queue = rtos_resource_create();
    return exchange->queue != NULL;
}

static bool hold_mutex(rtos_exchange_t *exchange) {
    return xSemaphoreTake(exchange->queue, 0) == pdTRUE;
}

/* ---- notification ---- */

static bool clear_notification(rtos_exchange_t *exchange) {
    xTaskNotifyStateClear(exchange->taker);
    ulTaskNotifyValueClear(exchange->taker, UINT32_MAX);
    return true;
}

static void give_notification(rtos_exchange_t *exchange) {
    xTaskNotifyGive(exchange->taker);
}

static bool take_notification(rtos_exchange_t *exchange, TickType_t ticks) {
    (void)exchange;
    return ulTaskNotifyTake(pdTRUE, ticks) != 0;
}

/* ---- queue of one message ---- */

static bool create_queue(rtos_exchange_t *exchange) {
    exchange->queue = xQueueCreate(1, (UBaseType_t)exchange->message_bytes);
    return exchange->queue != NULL;
}

static bool empty_queue(rtos_exchange_t *exchange) {
    xQueueReset(exchange->queue);
    return true;
}

static void give_message(rtos_exchange_t *exchange) {
    xQueueSend(exchange->queue, exchange->sent, 0);
}

static bool take_message(rtos_exchange_t *exchange, TickType_t ticks) {
    return xQueueReceive(exchange->queue, exchange->received, ticks) == pdTRUE;
}

/* ---- event group ---- */

static bool create_group(rtos_exchange_t *exchange) {
    exchange->group = xEventGroupCreate();
    return exchange->group != NULL;
}

static bool clear_group(rtos_exchange_t *exchange) {
    xEventGroupClearBits(exchange->group, TAKE_BIT);
    return true;
}

static void give_bit(rtos_exchange_t *exchange) {
    xEventGroupSetBits(exchange->group, TAKE_BIT);
}

static bool take_bit(rtos_exchange_t *exchange, TickType_t ticks) {
    return (xEventGroupWaitBits(exchange->group, TAKE_BIT, pdTRUE, pdTRUE, ticks) & TAKE_BIT) != 0;
}

/* ---- yield ---- */

static bool keep_turn(rtos_exchange_t *exchange) {
    atomic_store(&exchange->turn, false);
    return true;
}

/* It has arrived and yields, or it would not be another task's turn to ask. */
static bool yields(const rtos_exchange_t *exchange) {
    (void)exchange;
    return true;
}

static void give_turn(rtos_exchange_t *exchange) {
    atomic_store(&exchange->turn, true);
    taskYIELD();
}

static bool take_turn(rtos_exchange_t *exchange, TickType_t ticks) {
    TickType_t began = xTaskGetTickCount();
    while (!atomic_load(&exchange->turn)) {
        if (xTaskGetTickCount() - began > ticks) {
            return false;
        }
        taskYIELD();
    }
    return true;
}

/* ---- suspend and resume ---- */

static bool hold_nothing(rtos_exchange_t *exchange) {
    (void)exchange;
    return true;
}

static bool is_suspended(const rtos_exchange_t *exchange) {
    return eTaskGetState(exchange->taker) == eSuspended;
}

static void resume(rtos_exchange_t *exchange) {
    vTaskResume(exchange->taker);
}

static bool suspend(rtos_exchange_t *exchange, TickType_t ticks) {
    (void)exchange;
    (void)ticks; /* the giver repeats a resume that came too soon */
    vTaskSuspend(NULL);
    return true;
}

static const rtos_exchange_kind_t SEMAPHORE = {.create = create_semaphore,
                                               .hold = empty_semaphore,
                                               .waiting = is_blocked,
                                               .give = give_semaphore,
                                               .take = take_semaphore};
static const rtos_exchange_kind_t MUTEX = {.create = create_mutex,
                                           .hold = hold_mutex,
                                           .waiting = is_blocked,
                                           .give = give_semaphore,
                                           .take = take_semaphore,
                                           .put_back = give_semaphore};
static const rtos_exchange_kind_t NOTIFICATION = {
    .hold = clear_notification, .waiting = is_blocked, .give = give_notification, .take = take_notification};
static const rtos_exchange_kind_t QUEUE = {.create = create_queue,
                                           .hold = empty_queue,
                                           .waiting = is_blocked,
                                           .give = give_message,
                                           .take = take_message};
static const rtos_exchange_kind_t EVENT_GROUP = {
    .create = create_group, .hold = clear_group, .waiting = is_blocked, .give = give_bit, .take = take_bit};
static const rtos_exchange_kind_t YIELD = {
    .hold = keep_turn, .waiting = yields, .give = give_turn, .take = take_turn};
static const rtos_exchange_kind_t RESUME = {
    .hold = hold_nothing, .waiting = is_suspended, .give = resume, .take = suspend, .give_again = true};

static const rtos_exchange_kind_t *const KINDS[] = {
    [RTOS_EXCHANGE_SEMAPHORE] = &SEMAPHORE,
    [RTOS_EXCHANGE_NOTIFICATION] = &NOTIFICATION,
    [RTOS_EXCHANGE_QUEUE] = &QUEUE,
    [RTOS_EXCHANGE_MUTEX] = &MUTEX,
    [RTOS_EXCHANGE_EVENT_GROUP] = &EVENT_GROUP,
    [RTOS_EXCHANGE_SPINLOCK] = &rtos_exchange_spinlock,
    [RTOS_EXCHANGE_YIELD] = &YIELD,
    [RTOS_EXCHANGE_RESUME] = &RESUME,
};

esp_err_t rtos_exchange_create(rtos_exchange_t *exchange) {
    exchange->kind = KINDS[exchange->type];
    if (exchange->message_bytes == 0) {
        exchange->message_bytes = DEFAULT_MESSAGE_BYTES;
    }
    portMUX_INITIALIZE(&exchange->lock);
    bool created = exchange->kind->create == NULL || exchange->kind->create(exchange);
    return created ? ESP_OK : ESP_ERR_NO_MEM;
}

void rtos_exchange_delete(rtos_exchange_t *exchange) {
    if (exchange->queue != NULL) {
        vQueueDelete(exchange->queue);
        exchange->queue = NULL;
    }
    if (exchange->group != NULL) {
        vEventGroupDelete(exchange->group);
        exchange->group = NULL;
    }
}
