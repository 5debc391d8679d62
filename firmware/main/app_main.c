/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/agent.h"
#include "esp_err.h"

void app_main(void) {
    ESP_ERROR_CHECK(agent_start());
}
