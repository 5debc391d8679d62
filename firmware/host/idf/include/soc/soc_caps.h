/* SPDX-License-Identifier: Apache-2.0 */
/* What the host has of what chips have: a capability that is not here is none. */
#pragma once

#define SOC_WIFI_SUPPORTED 1
#define SOC_LIGHT_SLEEP_SUPPORTED 1
#define SOC_DEEP_SLEEP_SUPPORTED 1
