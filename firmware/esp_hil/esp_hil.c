/* SPDX-License-Identifier: Apache-2.0 */
#include "esp_hil.h"

#include <stddef.h>

#include "agent/agent.h"

esp_err_t esp_hil_start(const esp_hil_config_t *config) {
    static bool s_started;
    const esp_hil_config_t chosen = config != NULL ? *config : (esp_hil_config_t)ESP_HIL_CONFIG_DEFAULT();
    const agent_config_t agent = {
        .hold_log = chosen.hold_log,
        .take_network = chosen.take_network,
        .set_clock = chosen.set_clock,
        .confirm_image = chosen.confirm_image,
    };
    if (s_started) {
        return ESP_ERR_INVALID_STATE;
    }
    s_started = true;
    return agent_start_with(&agent);
}
