/* SPDX-License-Identifier: Apache-2.0 */
/* How threads are to be made. On the host pthread_create() is the machine's: a thread has what its attributes
 * say, and of this configuration nothing. It is kept, checked and given back, for each thread that sets it.
 */
#pragma once
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "esp_err.h"
#include "sdkconfig.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    size_t stack_size;
    size_t prio;
    bool inherit_cfg;
    const char *thread_name;
    int pin_to_core;
    uint32_t stack_alloc_caps;
} esp_pthread_cfg_t;

esp_pthread_cfg_t esp_pthread_get_default_config(void);
esp_err_t esp_pthread_set_cfg(const esp_pthread_cfg_t *cfg);
esp_err_t esp_pthread_get_cfg(esp_pthread_cfg_t *p); /* ESP_ERR_NOT_FOUND: none was set */
esp_err_t esp_pthread_init(void);

#ifdef __cplusplus
}
#endif
