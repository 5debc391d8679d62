/* SPDX-License-Identifier: Apache-2.0 */
// TLS transport (subset of ESP-IDF's esp_transport_ssl.h). PEM only; data is not copied and must outlive the
// transport, as in ESP-IDF.
#pragma once

#include "esp_tls.h"
#include "esp_transport.h"

#ifdef __cplusplus
extern "C" {
#endif

esp_transport_handle_t esp_transport_ssl_init(void);
void esp_transport_ssl_set_cert_data(esp_transport_handle_t t, const char *data, int len);
void esp_transport_ssl_set_client_cert_data(esp_transport_handle_t t, const char *data, int len);
void esp_transport_ssl_set_client_key_data(esp_transport_handle_t t, const char *data, int len);
void esp_transport_ssl_skip_common_name_check(esp_transport_handle_t t);
void esp_transport_ssl_set_common_name(esp_transport_handle_t t, const char *common_name);
void esp_transport_ssl_crt_bundle_attach(esp_transport_handle_t t,
                                         esp_err_t (*crt_bundle_attach)(void *conf));
void esp_transport_ssl_enable_global_ca_store(esp_transport_handle_t t);
// Of plain TCP too.
void esp_transport_ssl_set_addr_family(esp_transport_handle_t t, esp_tls_addr_family_t addr_family);

#ifdef CONFIG_ESP_TLS_CLIENT_SESSION_TICKETS
typedef enum {
    ESP_TRANSPORT_SESSION_TICKET_INIT,
    ESP_TRANSPORT_SESSION_TICKET_SAVE,
    ESP_TRANSPORT_SESSION_TICKET_USE,
    ESP_TRANSPORT_SESSION_TICKET_FREE,
} esp_transport_session_ticket_operation_t;

// ESP_ERR_INVALID_STATE where none is saved that could be used.
esp_err_t esp_transport_ssl_session_ticket_operation(esp_transport_handle_t t,
                                                     esp_transport_session_ticket_operation_t operation);
#endif

#ifdef __cplusplus
}
#endif
