/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

static agent_config_t s_config;

const agent_config_t *agent_config(void) {
    return &s_config;
}

void config_set(const agent_config_t *config) {
    s_config = *config;
}
