/* SPDX-License-Identifier: Apache-2.0 */
// TLS transport (subset of ESP-IDF's esp_transport_ssl.h). PEM only; data is not copied and must outlive the
// transport, as in ESP-IDF.
#pragma once

#include "esp_transport.h"

esp_transport_handle_t esp_transport_ssl_init(void);
void esp_transport_ssl_set_cert_data(esp_transport_handle_t t, const char *data, int len);
void esp_transport_ssl_set_client_cert_data(esp_transport_handle_t t, const char *data, int len);
void esp_transport_ssl_set_client_key_data(esp_transport_handle_t t, const char *data, int len);
void esp_transport_ssl_skip_common_name_check(esp_transport_handle_t t);
void esp_transport_ssl_set_common_name(esp_transport_handle_t t, const char *common_name);
