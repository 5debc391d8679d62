/* SPDX-License-Identifier: Apache-2.0 */
// RFC 4330's client as lwIP has it: who is asked when, in a task that stands for lwIP's.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "esp_log.h"
#include "esp_random.h"
#include "esp_sntp.h"
#include "esp_timer.h"
#include "freertos/FreeRTOS.h"
#include "freertos/task.h"
#include "lwip/netdb.h"
#include "lwip/sockets.h"
#include "sntp_message.h"

#ifndef SNTP_PORT
#define SNTP_PORT 123
#endif
#ifndef SNTP_RECV_TIMEOUT
#define SNTP_RECV_TIMEOUT 15000
#endif
#define RETRY_MS SNTP_RECV_TIMEOUT
#define RETRY_MAX_MS (10 * RETRY_MS)
#define LOOK_MS 50

static const char *TAG = "sntp";

typedef struct {
    const char *name; // the caller's
    ip_addr_t address;
    uint8_t reachability;
} server_t;

static pthread_mutex_t s_syncing = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP; // who stops waits for a callback
static pthread_mutex_t s_lock = PTHREAD_MUTEX_INITIALIZER;                 // of all below
static server_t s_servers[SNTP_MAX_SERVERS];
static bool s_enabled;
static uint32_t s_started; // how often; another number ends what the task is at
static esp_sntp_operatingmode_t s_mode;
static TaskHandle_t s_task;

static bool is_current(uint32_t started) {
    pthread_mutex_lock(&s_lock);
    const bool current = s_enabled && s_started == started;
    pthread_mutex_unlock(&s_lock);
    return current;
}

static bool resolve(server_t *server, struct sockaddr_in *address) {
    *address = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(SNTP_PORT)};
    if (server->name == NULL) {
        address->sin_addr.s_addr = server->address.u_addr.ip4.addr;
        return address->sin_addr.s_addr != 0;
    }
    const struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_DGRAM};
    struct addrinfo *found = NULL;
    if (lwip_getaddrinfo(server->name, NULL, &hints, &found) != 0) {
        return false;
    }
    address->sin_addr = ((const struct sockaddr_in *)(const void *)found->ai_addr)->sin_addr;
    lwip_freeaddrinfo(found);
    return true;
}

// What came, until it is an answer or the time is over.
static sntp_answer_t await_answer(int fd, uint32_t started, struct timeval *time) {
    const int64_t deadline_us = esp_timer_get_time() + SNTP_RECV_TIMEOUT * INT64_C(1000);
    while (is_current(started) && esp_timer_get_time() < deadline_us) {
        struct pollfd waiting = {.fd = fd, .events = POLLIN};
        uint8_t message[SNTP_MESSAGE_BYTES];
        if (poll(&waiting, 1, LOOK_MS) <= 0) {
            continue;
        }
        const ssize_t bytes = recv(fd, message, sizeof(message), 0);
        const sntp_answer_t answer = sntp_message_read(message, bytes, time);
        if (answer != SNTP_NO_ANSWER) {
            return answer;
        }
        if (bytes < 0) {
            vTaskDelay(pdMS_TO_TICKS(LOOK_MS)); // nobody on that port: lwIP does not learn of it
        }
    }
    return SNTP_NO_ANSWER;
}

static sntp_answer_t ask(const struct sockaddr_in *address, uint32_t started, struct timeval *time) {
    uint8_t request[SNTP_MESSAGE_BYTES];
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    sntp_message_write(request);
    sntp_answer_t answer = SNTP_NO_ANSWER;
    if (fd >= 0 && connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0) {
        (void)send(fd, request, sizeof(request), 0);
        answer = await_answer(fd, started, time);
    }
    if (fd >= 0) {
        close(fd);
    }
    return answer;
}

static void note_request(uint32_t index, const struct sockaddr_in *address) {
    pthread_mutex_lock(&s_lock);
    s_servers[index].reachability = (uint8_t)(s_servers[index].reachability << 1);
    s_servers[index].address.u_addr.ip4.addr = address->sin_addr.s_addr;
    pthread_mutex_unlock(&s_lock);
}

static void note_answer(uint32_t index) {
    pthread_mutex_lock(&s_lock);
    s_servers[index].reachability |= 1;
    pthread_mutex_unlock(&s_lock);
}

typedef struct {
    uint32_t index;
    uint32_t retry_ms;
} turn_t;

static bool is_set(const server_t *server) {
    return server->name != NULL || server->address.u_addr.ip4.addr != 0;
}

// The next server at once; where there is no other, this one later and later.
static uint32_t try_next(turn_t *turn) {
    for (uint32_t i = 1; i < SNTP_MAX_SERVERS; i++) {
        const uint32_t next = (turn->index + i) % SNTP_MAX_SERVERS;
        if (is_set(&s_servers[next])) {
            turn->index = next;
            turn->retry_ms = RETRY_MS;
            return 0;
        }
    }
    const uint32_t wait_ms = turn->retry_ms;
    turn->retry_ms = 2 * wait_ms < RETRY_MAX_MS ? 2 * wait_ms : RETRY_MAX_MS;
    return wait_ms;
}

// A request; how long to wait before the next one.
static uint32_t take_turn(turn_t *turn, uint32_t started) {
    struct sockaddr_in address;
    struct timeval time;
    pthread_mutex_lock(&s_lock);
    server_t server = s_servers[turn->index];
    pthread_mutex_unlock(&s_lock);
    if (!resolve(&server, &address)) {
        ESP_LOGD(TAG, "no address of server %u", (unsigned)turn->index);
        return RETRY_MS + try_next(turn);
    }
    note_request(turn->index, &address);
    if (ask(&address, started, &time) != SNTP_TIME) {
        return try_next(turn);
    }
    pthread_mutex_lock(&s_syncing);
    if (is_current(started)) {
        note_answer(turn->index);
        turn->retry_ms = RETRY_MS;
        sntp_sync_time(&time);
    }
    pthread_mutex_unlock(&s_syncing);
    return sntp_get_sync_interval();
}

// A notification that came late, of the start that is under way, does not end it.
static void rest(uint32_t wait_ms, uint32_t started) {
    const TickType_t wait = pdMS_TO_TICKS(wait_ms), begun = xTaskGetTickCount();
    TickType_t passed = 0;
    while (is_current(started) && passed < wait) {
        ulTaskNotifyTake(pdTRUE, wait - passed);
        passed = xTaskGetTickCount() - begun;
    }
}

static uint32_t startup_delay_ms(void) {
#ifdef CONFIG_LWIP_SNTP_STARTUP_DELAY
    return esp_random() % CONFIG_LWIP_SNTP_MAXIMUM_STARTUP_DELAY;
#else
    return 0;
#endif
}

static void lwip_task(void *unused) {
    (void)unused;
    for (;;) {
        pthread_mutex_lock(&s_lock);
        const uint32_t started = s_started;
        const bool polls = s_enabled && s_mode == ESP_SNTP_OPMODE_POLL;
        pthread_mutex_unlock(&s_lock);
        if (!polls) {
            ulTaskNotifyTake(pdTRUE, portMAX_DELAY);
            continue;
        }
        turn_t turn = {.retry_ms = RETRY_MS};
        rest(startup_delay_ms(), started);
        while (is_current(started)) {
            rest(take_turn(&turn, started), started);
        }
    }
}

static void change(bool enabled) {
    pthread_mutex_lock(&s_lock);
    if (enabled && !s_enabled) {
        s_started++;
    }
    s_enabled = enabled;
    TaskHandle_t task = s_task;
    pthread_mutex_unlock(&s_lock);
    if (task != NULL) {
        xTaskNotifyGive(task);
    }
}

void esp_sntp_init(void) {
    pthread_mutex_lock(&s_lock);
    const bool create = s_task == NULL;
    pthread_mutex_unlock(&s_lock);
    if (create && xTaskCreatePinnedToCore(lwip_task, "tiT", CONFIG_LWIP_TCPIP_TASK_STACK_SIZE, NULL,
                                          CONFIG_LWIP_TCPIP_TASK_PRIO, &s_task, tskNO_AFFINITY) != pdPASS) {
        ESP_LOGE(TAG, "no memory for lwIP's task");
        return;
    }
    change(true);
}

void esp_sntp_stop(void) {
    change(false);
    pthread_mutex_lock(&s_syncing);
    pthread_mutex_unlock(&s_syncing);
}

bool esp_sntp_enabled(void) {
    pthread_mutex_lock(&s_lock);
    const bool enabled = s_enabled;
    pthread_mutex_unlock(&s_lock);
    return enabled;
}

bool sntp_restart(void) {
    if (!esp_sntp_enabled()) {
        return false;
    }
    esp_sntp_stop();
    esp_sntp_init();
    return true;
}

void esp_sntp_setoperatingmode(esp_sntp_operatingmode_t operating_mode) {
    s_mode = operating_mode;
}

esp_sntp_operatingmode_t esp_sntp_getoperatingmode(void) {
    return s_mode;
}

void esp_sntp_setserver(u8_t idx, const ip_addr_t *addr) {
    if (idx < SNTP_MAX_SERVERS) {
        pthread_mutex_lock(&s_lock);
        s_servers[idx].address = addr == NULL ? (ip_addr_t){0} : *addr;
        s_servers[idx].name = NULL;
        pthread_mutex_unlock(&s_lock);
    }
}

const ip_addr_t *esp_sntp_getserver(u8_t idx) {
    static const ip_addr_t none;
    return idx < SNTP_MAX_SERVERS ? &s_servers[idx].address : &none;
}

void esp_sntp_setservername(u8_t idx, const char *server) {
    if (idx < SNTP_MAX_SERVERS) {
        pthread_mutex_lock(&s_lock);
        s_servers[idx].name = server;
        pthread_mutex_unlock(&s_lock);
    }
}

const char *esp_sntp_getservername(u8_t idx) {
    return idx < SNTP_MAX_SERVERS ? s_servers[idx].name : NULL;
}

uint8_t esp_sntp_getreachability(uint8_t idx) {
    return idx < SNTP_MAX_SERVERS ? s_servers[idx].reachability : 0;
}
