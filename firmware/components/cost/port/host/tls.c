/* SPDX-License-Identifier: Apache-2.0 */
/* host/idf has OpenSSL in the place of mbedTLS. */
#include "private.h"

static esp_err_t open_tls(cost_t *cost) {
    return bench_fail(cost->samples, BENCH_OWNER_CONFIGURATION, ESP_ERR_NOT_SUPPORTED,
                      "a host has no mbedTLS");
}

static bool repeat_tls(cost_t *cost) {
    (void)cost;
    return false;
}

const cost_part_t cost_tls_record = {.open = open_tls, .repeat = repeat_tls};
const cost_part_t cost_tls_handshake = {.open = open_tls, .repeat = repeat_tls};
