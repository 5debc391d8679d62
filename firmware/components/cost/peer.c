/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "freertos/FreeRTOS.h"
#include "freertos/task.h"
#include "lwip/sockets.h"
#include "private.h"

enum { PEER_STACK_BYTES = 4096 };

static int listen_on(uint16_t port) {
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int yes = 1;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd >= 0 &&
        (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) != 0 ||
         bind(fd, (const struct sockaddr *)&address, sizeof(address)) != 0 || listen(fd, 1) != 0)) {
        int error = errno;
        close(fd);
        errno = error;
        fd = -1;
    }
    return fd;
}

static void peer_task(void *argument) {
    cost_peer_t *peer = argument;
    int fd = accept(peer->listener, NULL, NULL);
    if (fd >= 0) {
        const int yes = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
        peer->serve(fd, peer->context);
        close(fd);
    }
    xSemaphoreGive(peer->ended);
    vTaskDelete(NULL);
}

esp_err_t cost_peer_start(cost_peer_t *peer, bench_samples_t *samples) {
    peer->listener = listen_on(peer->port);
    if (peer->listener < 0) {
        return bench_fail(samples, BENCH_OWNER_FIRMWARE, ESP_FAIL, "the loopback's port %u cannot be had: %s",
                          (unsigned)peer->port, strerror(errno));
    }
    peer->ended = xSemaphoreCreateBinary();
    if (peer->ended == NULL || xTaskCreatePinnedToCore(peer_task, "cost_peer", PEER_STACK_BYTES, peer,
                                                       COST_PEER_PRIORITY, NULL, tskNO_AFFINITY) != pdPASS) {
        close(peer->listener);
        peer->listener = -1;
        return bench_fail(samples, BENCH_OWNER_FIRMWARE, ESP_ERR_NO_MEM, "no memory for the other end");
    }
    return ESP_OK;
}

/* Wakes accept() where nobody has come. */
static void knock(uint16_t port) {
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd >= 0) {
        (void)connect(fd, (const struct sockaddr *)&address, sizeof(address));
        close(fd);
    }
}

void cost_peer_stop(cost_peer_t *peer) {
    if (peer->ended != NULL && peer->listener >= 0) {
        knock(peer->port); /* one that has been served is in the backlog only */
        xSemaphoreTake(peer->ended, portMAX_DELAY);
        close(peer->listener);
    }
    if (peer->ended != NULL) {
        vSemaphoreDelete(peer->ended);
    }
    *peer = (cost_peer_t){.listener = -1};
}
