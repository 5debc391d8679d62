/* SPDX-License-Identifier: Apache-2.0 */
/* A deadline for the whole of a GET, whatever the server does. */
#include <errno.h>

#include "esp_timer.h"
#include "lwip/sockets.h"
#include "private.h"

enum { SLICE_US = 100000 }; /* how often a wait looks for a cancel */

uint32_t http_elapsed_us(int64_t start_us) {
    return (uint32_t)(esp_timer_get_time() - start_us);
}

bool http_call_over(const http_call_t *call) {
    const http_link_config_t *config = &call->link->config;
    bool cancelled = config->cancelled != NULL && config->cancelled(config->context);
    return cancelled || esp_timer_get_time() >= call->deadline_us;
}

/* 1 ready or broken, 0 not yet. */
static int look(int fd, bool to_write, int64_t wait_us) {
    fd_set set;
    FD_ZERO(&set);
    FD_SET(fd, &set);
    struct timeval wait = {.tv_sec = 0, .tv_usec = (suseconds_t)wait_us};
    int ready = select(fd + 1, to_write ? NULL : &set, to_write ? &set : NULL, NULL, &wait);
    return ready < 0 && errno == EINTR ? 0 : ready;
}

bool http_call_wait(const http_call_t *call, int fd, bool to_write) {
    while (!http_call_over(call)) {
        int64_t left_us = call->deadline_us - esp_timer_get_time();
        if (look(fd, to_write, left_us < 0 ? 0 : left_us < SLICE_US ? left_us : SLICE_US) != 0) {
            return true;
        }
    }
    return false;
}
