/* SPDX-License-Identifier: Apache-2.0 */
/* What the gateway's files share. */
#pragma once

#include "http_link/gateway.h"

enum { HTTP_GATEWAY_CHECK_MS = 100 }; /* how often a wait looks for the end */

typedef struct {
    http_message_request_t request;
    int64_t received_us; /* as esp_timer counts */
} http_gateway_job_t;

/* The tasks are to end. `context` is the gateway. */
bool http_gateway_is_over(void *context);

/* The task of a channel's requests. */
void http_gateway_work(void *channel);
