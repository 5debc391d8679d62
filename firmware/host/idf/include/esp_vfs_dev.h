/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "driver/uart_vfs.h"
#include "esp_vfs.h"
