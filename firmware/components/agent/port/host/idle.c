/* SPDX-License-Identifier: Apache-2.0 */
#include "freertos/FreeRTOS.h"
#include "freertos/idf_additions.h"
#include "port/port.h"

bool port_idle_count(bool wanted) {
    (void)wanted;
    return true;
}

uint32_t port_idle_us(int core) {
    return (uint32_t)ulTaskGetIdleRunTimeCounterForCore((BaseType_t)core);
}
