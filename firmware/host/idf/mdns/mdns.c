/* SPDX-License-Identifier: Apache-2.0 */
/* The socket, for as long as the board has an address, and the task that reads it. */
#include <arpa/inet.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "esp_log.h"
#include "freertos/FreeRTOS.h"
#include "freertos/semphr.h"
#include "freertos/task.h"
#include "mdns_priv.h"

#define PORT 5353
#define GROUP "224.0.0.251"
#define TICK_MS 50
#define TASK_PRIORITY 1 /* CONFIG_MDNS_TASK_PRIORITY */
#define TASK_STACK_BYTES 8192
#define OWN_COUNT 8

static SemaphoreHandle_t s_mutex;
static TaskHandle_t s_task;
static int s_fd = -1;
static struct in_addr s_address;
static uint32_t s_own[OWN_COUNT]; /* sums of what was sent last: it comes back */
static unsigned s_own_next;

bool mdns_lock(void) {
    return s_mutex != NULL && xSemaphoreTakeRecursive(s_mutex, portMAX_DELAY) == pdTRUE;
}

void mdns_unlock(void) {
    xSemaphoreGiveRecursive(s_mutex);
}

struct in_addr mdns_own_address(void) {
    return s_address;
}

/* FNV-1a */
static uint32_t sum(const uint8_t *bytes, size_t count) {
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < count; i++) {
        hash = (hash ^ bytes[i]) * 16777619u;
    }
    return hash;
}

static void send_to(const mdns_message_t *message, const struct sockaddr_in *to) {
    s_own[s_own_next++ % OWN_COUNT] = sum(message->bytes, message->length);
    (void)sendto(s_fd, message->bytes, message->length, 0, (const struct sockaddr *)to, sizeof *to);
}

void mdns_send_all(mdns_message_t *message) {
    struct sockaddr_in group = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    inet_pton(AF_INET, GROUP, &group.sin_addr);
    if (s_fd >= 0) {
        send_to(message, &group);
    }
}

static bool is_own(const uint8_t *bytes, size_t count, const struct sockaddr_in *from) {
    bool found = false;
    for (int i = 0; i < OWN_COUNT && from->sin_addr.s_addr == s_address.s_addr; i++) {
        found = found || s_own[i] == sum(bytes, count);
    }
    return found;
}

static struct in_addr address_now(void) {
    esp_netif_t *netif = esp_netif_get_default_netif();
    esp_netif_ip_info_t info = {0};
    if (netif != NULL && esp_netif_is_netif_up(netif)) {
        (void)esp_netif_get_ip_info(netif, &info);
    }
    return (struct in_addr){.s_addr = info.ip.addr};
}

static int open_socket(struct in_addr interface) {
    const struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    struct ip_mreq group = {.imr_interface = interface};
    const int yes = 1, hops = 255;
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    inet_pton(AF_INET, GROUP, &group.imr_multiaddr);
    if (fd >= 0 && (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
                    setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &yes, sizeof yes) != 0 ||
                    setsockopt(fd, IPPROTO_IP, IP_MULTICAST_TTL, &hops, sizeof hops) != 0 ||
                    setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &interface, sizeof interface) != 0 ||
                    setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &group, sizeof group) != 0 ||
                    bind(fd, (const struct sockaddr *)&any, sizeof any) != 0)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* Opens the socket when the board has an address, closes it when that is gone or another one. */
static void follow_address(void) {
    struct in_addr address = address_now();
    if (address.s_addr == s_address.s_addr) {
        return;
    }
    if (s_fd >= 0) {
        close(s_fd);
    }
    s_address = address;
    s_fd = address.s_addr != 0 ? open_socket(address) : -1;
    if (s_fd >= 0) {
        mdns_services_announce(MDNS_TTL_S);
    }
}

static void take(uint8_t *bytes, size_t count, const struct sockaddr_in *from) {
    ns_msg message;
    mdns_message_t answer;
    bool legacy = ntohs(from->sin_port) != PORT; /* RFC 6762, 6.7: a plain resolver, which wants its own */
    if (is_own(bytes, count, from) || ns_initparse(bytes, (int)count, &message) != 0) {
        return;
    }
    if (ns_msg_getflag(message, ns_f_qr) == 1) {
        mdns_searches_take(&message);
    } else if (mdns_services_answer(&message, legacy, &answer)) {
        legacy ? send_to(&answer, from) : mdns_send_all(&answer);
    }
}

static void serve(void *argument) {
    (void)argument;
    for (;;) {
        mdns_lock();
        follow_address();
        mdns_searches_tick();
        int fd = s_fd;
        mdns_unlock();
        struct pollfd one = {.fd = fd, .events = POLLIN};
        if (fd < 0) {
            vTaskDelay(pdMS_TO_TICKS(TICK_MS));
        } else if (poll(&one, 1, TICK_MS) > 0) {
            uint8_t bytes[9000];
            struct sockaddr_in from = {0};
            socklen_t length = sizeof from;
            ssize_t count =
                recvfrom(fd, bytes, sizeof bytes, MSG_DONTWAIT, (struct sockaddr *)&from, &length);
            mdns_lock();
            if (count > 0) {
                take(bytes, (size_t)count, &from);
            }
            mdns_unlock();
        }
    }
}

esp_err_t mdns_init(void) {
    if (s_mutex != NULL) {
        return ESP_OK;
    }
    s_mutex = xSemaphoreCreateRecursiveMutex();
    if (s_mutex == NULL ||
        xTaskCreatePinnedToCore(serve, "mdns", TASK_STACK_BYTES, NULL, TASK_PRIORITY, &s_task, 0) != pdPASS) {
        return ESP_ERR_NO_MEM;
    }
    return ESP_OK;
}

void mdns_free(void) {
    if (!mdns_lock()) {
        return;
    }
    mdns_services_announce(0);
    mdns_services_free();
    vTaskDelete(s_task);
    if (s_fd >= 0) {
        close(s_fd);
    }
    s_fd = -1;
    s_address = (struct in_addr){0};
    mdns_unlock();
    vSemaphoreDelete(s_mutex);
    s_mutex = NULL;
}
