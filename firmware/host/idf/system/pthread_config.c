/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "esp_heap_caps.h"
#include "esp_pthread.h"
#include "freertos/FreeRTOS.h"
#include "freertos/task.h"

static _Thread_local esp_pthread_cfg_t s_config;
static _Thread_local bool s_set;

esp_err_t esp_pthread_init(void) {
    return ESP_OK;
}

esp_pthread_cfg_t esp_pthread_get_default_config(void) {
    return (esp_pthread_cfg_t){.stack_size = CONFIG_PTHREAD_TASK_STACK_SIZE_DEFAULT,
                               .prio = CONFIG_PTHREAD_TASK_PRIO_DEFAULT,
                               .pin_to_core = CONFIG_PTHREAD_TASK_CORE_DEFAULT == -1
                                                  ? tskNO_AFFINITY
                                                  : CONFIG_PTHREAD_TASK_CORE_DEFAULT,
                               .stack_alloc_caps = MALLOC_CAP_INTERNAL | MALLOC_CAP_8BIT};
}

esp_err_t esp_pthread_set_cfg(const esp_pthread_cfg_t *cfg) {
    if (cfg == NULL || cfg->stack_size < CONFIG_PTHREAD_STACK_MIN ||
        (cfg->stack_alloc_caps != 0 && !(cfg->stack_alloc_caps & MALLOC_CAP_8BIT))) {
        return ESP_ERR_INVALID_ARG;
    }
    s_config = *cfg;
    s_config.stack_alloc_caps =
        cfg->stack_alloc_caps == 0 ? MALLOC_CAP_8BIT | MALLOC_CAP_INTERNAL : cfg->stack_alloc_caps;
    s_set = true;
    return ESP_OK;
}

esp_err_t esp_pthread_get_cfg(esp_pthread_cfg_t *p) {
    if (p == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    *p = s_config;
    return s_set ? ESP_OK : ESP_ERR_NOT_FOUND;
}
