/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <inttypes.h>
#include <stdio.h>

#include "link.h"

static inline void tell_number(link_environment_cb_t callback, void *context, const char *key,
                               int32_t value) {
    char text[16];
    snprintf(text, sizeof(text), "%" PRId32, value);
    callback(key, text, context);
}
