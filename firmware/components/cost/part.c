/* SPDX-License-Identifier: Apache-2.0 */
#include "cost/part.h"

#include "private.h"

/* In the order of the names. */
static const cost_part_t *const PARTS[] = {
    &cost_serialise, &cost_publish_qos0, &cost_publish_qos1,  &cost_puback_in, &cost_tcp_out,
    &cost_http_get,  &cost_task_switch,  &cost_queue,         &cost_mutex,     &cost_nvs_commit,
    &cost_boot,      &cost_tls_record,   &cost_tls_handshake,
};

const char *const cost_part_names[] = {
    "serialise", "publish_qos0", "publish_qos1", "puback_in", "tcp_out",    "http_get",      "task_switch",
    "queue",     "mutex",        "nvs_commit",   "boot",      "tls_record", "tls_handshake", NULL,
};

_Static_assert(sizeof(cost_part_names) / sizeof(cost_part_names[0]) == sizeof(PARTS) / sizeof(PARTS[0]) + 1,
               "a name for each part");

const cost_part_t *cost_part(int64_t index) {
    return PARTS[index];
}

bool cost_await(SemaphoreHandle_t semaphore) {
    return xSemaphoreTake(semaphore, pdMS_TO_TICKS(COST_TIMEOUT_MS)) == pdTRUE;
}
