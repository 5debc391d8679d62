/* SPDX-License-Identifier: Apache-2.0 */
/* Settings: from non-volatile storage, else as configured at build time. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "esp_err.h"

void settings_init(void);

/* Copies the value to out, or fallback where there is none or it is too long. */
void settings_get(const char *space, const char *key, const char *fallback, char *out, size_t out_bytes);
uint32_t settings_get_u32(const char *space, const char *key, uint32_t fallback);
/* The value in memory of its own, to be freed; NULL where there is none. */
char *settings_get_text(const char *space, const char *key);

esp_err_t settings_set(const char *space, const char *key, const char *value);
esp_err_t settings_set_u32(const char *space, const char *key, uint32_t value);
