/* SPDX-License-Identifier: Apache-2.0 */
/* ESP-IDF's linux target resolves by the machine's own name servers. */
#include "link.h"

esp_err_t link_set_dns(const char *ipv4) {
    (void)ipv4;
    return ESP_ERR_NOT_SUPPORTED;
}
