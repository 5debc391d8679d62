/* SPDX-License-Identifier: Apache-2.0 */
/* Between the parts of a load. */
#pragma once

#include "rtos/load.h"

static inline bool rtos_load_is_over(const rtos_load_t *load) {
    return load->over || load->workers->stop;
}

/* Ten multiplications, as the study's load does in each of its loops, a hundred times. */
void rtos_multiply(void);

/* A worker's work; its context is an rtos_hog_t. */
void rtos_load_hog(void *context);
void rtos_load_pushing_hog(void *context);

/* A worker's work; its context is the load. */
void rtos_load_publish(void *context);
void rtos_load_write_flash(void *context);
void rtos_load_copy_psram(void *context);

/* What they need. */
esp_err_t rtos_load_open_network(rtos_load_t *load);
esp_err_t rtos_load_open_flash(rtos_load_t *load);
esp_err_t rtos_load_open_psram(rtos_load_t *load);
