/* SPDX-License-Identifier: Apache-2.0 */
/* The event types every component's API uses. Loops and posting are not part of the subset: components on
 * the host call their handlers directly from their own task, as esp-mqtt does. */
#pragma once
#include "esp_err.h"
#include "esp_event_base.h"
#include "freertos/FreeRTOS.h"
#include "freertos/queue.h"
#include "freertos/semphr.h"
#include "freertos/task.h"
