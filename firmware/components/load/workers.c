/* SPDX-License-Identifier: Apache-2.0 */
#include "load/workers.h"

#include "freertos/idf_additions.h"
#include "freertos/task.h"

enum {
    DEFAULT_PRIORITY = 1,       /* as in the rtos-mqtt study; the mqtt task has 5 */
    DEFAULT_STACK_BYTES = 6144, /* the publisher's holds a TLS write and, at times, a log line */
};

const char *const load_cores[] = {"none", "0", "1", NULL};
const char *const load_pinned_cores[] = {"0", "1", NULL};

BaseType_t load_core_of(int64_t choice) {
    return choice == 0 ? tskNO_AFFINITY : (BaseType_t)(choice - 1);
}

const char *load_core_conflict(BaseType_t core) {
    bool exists = core == tskNO_AFFINITY || core < configNUMBER_OF_CORES;
    return exists ? NULL : "this chip has no core 1";
}

esp_err_t load_workers_create(load_workers_t *group, const bench_run_t *run) {
    group->run = run;
    group->ended = xEventGroupCreate();
    return group->ended != NULL ? ESP_OK : ESP_ERR_NO_MEM;
}

void load_workers_delete(load_workers_t *group) {
    if (group->ended != NULL) {
        vEventGroupDelete(group->ended);
        group->ended = NULL;
    }
}

static void work(void *argument) {
    load_worker_t *worker = argument;
    worker->work(worker->context);
    worker->stack_free_min_bytes = (uint32_t)uxTaskGetStackHighWaterMark(NULL); /* bytes, in ESP-IDF */
    xEventGroupSetBits(worker->group->ended, worker->bit);
    vTaskDelete(NULL);
}

/* Returns the bits of those that were started. */
static EventBits_t start(load_workers_t *group, load_worker_t *workers, size_t count) {
    EventBits_t started = 0;
    for (size_t i = 0; i < count; i++) {
        load_worker_t *worker = &workers[i];
        worker->group = group;
        worker->bit = (EventBits_t)1 << i;
        uint32_t stack_bytes = worker->stack_bytes != 0 ? worker->stack_bytes : DEFAULT_STACK_BYTES;
        UBaseType_t priority = worker->priority != 0 ? worker->priority : DEFAULT_PRIORITY;
        if (xTaskCreatePinnedToCore(work, worker->name, stack_bytes, worker, priority, NULL, worker->core) !=
            pdTRUE) {
            break;
        }
        started |= worker->bit;
    }
    return started;
}

static void await(load_workers_t *group, EventBits_t bits) {
    const TickType_t check = pdMS_TO_TICKS(LOAD_CHECK_MS);
    while ((xEventGroupWaitBits(group->ended, bits, pdFALSE, pdTRUE, check) & bits) != bits) {
        if (bench_aborted(group->run)) {
            group->stop = true;
        }
    }
}

esp_err_t load_workers_run(load_workers_t *group, load_worker_t *workers, size_t count) {
    const EventBits_t all = ((EventBits_t)1 << count) - 1;
    xEventGroupClearBits(group->ended, all);
    group->stop = false;
    EventBits_t started = start(group, workers, count);
    if (started != all) {
        group->stop = true;
    }
    if (started != 0) {
        await(group, started);
    }
    return started == all ? ESP_OK : ESP_ERR_NO_MEM;
}

bool load_workers_take(const load_workers_t *group, SemaphoreHandle_t semaphore) {
    while (!group->stop) {
        if (xSemaphoreTake(semaphore, pdMS_TO_TICKS(LOAD_CHECK_MS)) == pdTRUE) {
            return true;
        }
    }
    return false;
}
