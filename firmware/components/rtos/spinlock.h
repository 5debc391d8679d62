/* SPDX-License-Identifier: Apache-2.0 */
/* Within the component: the spinlock as an exchange. */
#pragma once

#include "rtos/exchange.h"

extern const rtos_exchange_kind_t rtos_exchange_spinlock;
