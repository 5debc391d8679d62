/* SPDX-License-Identifier: Apache-2.0 */
/* Here, and on the linux target: x86 frames, glibc, OpenSSL. */
#include "agent/agent.h"
#include "port/port.h"

const char *port_memory_prefix(void) {
    return "host_";
}

esp_err_t agent_sections(agent_sections_t *sections) {
    (void)sections;
    return ESP_ERR_NOT_SUPPORTED;
}
