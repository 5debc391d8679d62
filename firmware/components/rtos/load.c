/* SPDX-License-Identifier: Apache-2.0 */
#include "rtos/load.h"

#include "esp_heap_caps.h"
#include "load/idle_watch.h"
#include "load_private.h"

enum { HOG_PRIORITY = tskIDLE_PRIORITY + 1, DEVICE_PRIORITY = 4, HOG_STACK_BYTES = 3072 };

const char *const rtos_loads[] = {"none",    "same_core", "other_core", "both", "migrate",
                                  "network", "flash",     "psram",      NULL};

static bool has_hogs(const rtos_load_t *load) {
    return load->kind >= RTOS_LOAD_SAME_CORE && load->kind <= RTOS_LOAD_MIGRATE;
}

const char *rtos_load_conflict(const rtos_load_t *load) {
    const rtos_load_kind_t kind = load->kind;
    if (has_hogs(load) && kind != RTOS_LOAD_SAME_CORE && configNUMBER_OF_CORES < 2) {
        return "load=other_core, both and migrate need two cores, and this chip has one";
    }
    if (kind == RTOS_LOAD_MIGRATE && load->task_core != tskNO_AFFINITY) {
        return "load=migrate moves a task that has no core of its own: it needs task_core=none";
    }
    if ((kind == RTOS_LOAD_SAME_CORE || kind == RTOS_LOAD_OTHER_CORE) && load->task_core == tskNO_AFFINITY) {
        return "load=same_core and other_core need a task with a core of its own: task_core=0 or 1";
    }
    return NULL;
}

esp_err_t rtos_load_open(rtos_load_t *load) {
    if (has_hogs(load)) {
        load_idle_watch_stop();
    }
    switch (load->kind) {
    case RTOS_LOAD_NETWORK:
        return rtos_load_open_network(load);
    case RTOS_LOAD_FLASH:
        return rtos_load_open_flash(load);
    case RTOS_LOAD_PSRAM:
        return rtos_load_open_psram(load);
    default:
        return ESP_OK;
    }
}

void rtos_load_close(rtos_load_t *load) {
    if (load->kind == RTOS_LOAD_NETWORK) {
        mqtt_link_close(&load->link);
    }
    heap_caps_free(load->memory);
    load->memory = NULL;
    if (has_hogs(load)) {
        load_idle_watch_restore();
    }
}

/* ---- its tasks ---- */

static load_worker_t make_hog(rtos_load_t *load, size_t index, BaseType_t core) {
    static const char *const names[RTOS_LOAD_WORKERS] = {"hog_0", "hog_1"};
    const bool pushing = load->kind == RTOS_LOAD_MIGRATE;
    load->hogs[index].load = load;
    load->hogs[index].core = core;
    load->hogs[index].task = NULL;
    return (load_worker_t){
        .name = names[index],
        .work = pushing ? rtos_load_pushing_hog : rtos_load_hog,
        .context = &load->hogs[index],
        .core = core,
        .priority = pushing ? load->task_priority + 1 : HOG_PRIORITY,
        .stack_bytes = HOG_STACK_BYTES,
    };
}

static BaseType_t other_core(const rtos_load_t *load) {
    return configNUMBER_OF_CORES > 1 && load->task_core != tskNO_AFFINITY ? 1 - load->task_core
                                                                          : load->task_core;
}

static load_worker_t make_device(rtos_load_t *load, void (*work)(void *)) {
    return (load_worker_t){
        .name = "load", .work = work, .context = load, .core = other_core(load), .priority = DEVICE_PRIORITY};
}

size_t rtos_load_workers(rtos_load_t *load, load_worker_t *workers) {
    load->over = false;
    switch (load->kind) {
    case RTOS_LOAD_SAME_CORE:
        workers[0] = make_hog(load, 0, load->task_core);
        return 1;
    case RTOS_LOAD_OTHER_CORE:
        workers[0] = make_hog(load, 0, other_core(load));
        return 1;
    case RTOS_LOAD_BOTH:
    case RTOS_LOAD_MIGRATE:
        workers[0] = make_hog(load, 0, 0);
        workers[1] = make_hog(load, 1, 1);
        return 2;
    case RTOS_LOAD_NETWORK:
        workers[0] = make_device(load, rtos_load_publish);
        return 1;
    case RTOS_LOAD_FLASH:
        workers[0] = make_device(load, rtos_load_write_flash);
        return 1;
    case RTOS_LOAD_PSRAM:
        workers[0] = make_device(load, rtos_load_copy_psram);
        workers[0].priority = HOG_PRIORITY;
        return 1;
    default:
        return 0;
    }
}

/* ---- what it did ---- */

void rtos_load_environment(const rtos_load_t *load) {
    static const char *const done_keys[] = {
        [RTOS_LOAD_NETWORK] = "load_messages_count",
        [RTOS_LOAD_FLASH] = "load_sectors_count",
        [RTOS_LOAD_PSRAM] = "load_copied_kbytes",
    };
    static const char *const failed_keys[] = {
        [RTOS_LOAD_NETWORK] = "load_messages_failed_count",
        [RTOS_LOAD_FLASH] = "load_sectors_failed_count",
        [RTOS_LOAD_PSRAM] = NULL,
    };
    if (has_hogs(load)) {
        bench_environment_int(load->samples, "load_hog_rounds_count",
                              (int64_t)(load->hogs[0].rounds_count + load->hogs[1].rounds_count));
    } else if (load->kind != RTOS_LOAD_NONE) {
        bench_environment_int(load->samples, done_keys[load->kind], load->done_count);
        if (failed_keys[load->kind] != NULL) {
            bench_environment_int(load->samples, failed_keys[load->kind], load->failed_count);
        }
    }
}
