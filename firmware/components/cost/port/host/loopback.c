/* SPDX-License-Identifier: Apache-2.0 */
#include "private.h"

esp_err_t cost_loopback(void) {
    return ESP_OK;
}
