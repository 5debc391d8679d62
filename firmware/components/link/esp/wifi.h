/* SPDX-License-Identifier: Apache-2.0 */
/* link.h of a board with Wi-Fi. */
#pragma once

#include "link.h"

esp_err_t wifi_up(const agent_provision_t *provision, TickType_t timeout);
void wifi_environment(link_environment_cb_t callback, void *context);
