/* SPDX-License-Identifier: Apache-2.0 */
/* Why there is no connection: a sentence, a status, and whose fault it is. */
#include <stdio.h>
#include <string.h>

#include "mqtt_link/tls_fault.h"
#include "private.h"

typedef struct {
    esp_err_t status;
    bench_owner_t owner;
    char what[128];
} fault_t;

static void explain_refusal(fault_t *fault, esp_mqtt_connect_return_code_t code) {
    static const char *const reasons[] = {"accepted",           "unacceptable protocol version",
                                          "client id rejected", "server unavailable",
                                          "bad user name",      "not authorized"};
    bool known = (size_t)code < sizeof(reasons) / sizeof(reasons[0]);
    bool ours = code == MQTT_CONNECTION_REFUSE_PROTOCOL || code == MQTT_CONNECTION_REFUSE_ID_REJECTED;
    fault->status = ESP_ERR_NOT_ALLOWED;
    fault->owner = ours ? BENCH_OWNER_FIRMWARE : BENCH_OWNER_RIG;
    snprintf(fault->what, sizeof(fault->what), "refused with CONNACK code %d (%s)", (int)code,
             known ? reasons[code] : "unknown");
}

static void explain_tls(fault_t *fault, const esp_mqtt_error_codes_t *e) {
    fault->status = ESP_ERR_INVALID_RESPONSE;
    snprintf(fault->what, sizeof(fault->what), "TLS failed: mbedtls -0x%04x, certificate flags 0x%x%s",
             (unsigned)e->esp_tls_stack_err, (unsigned)e->esp_tls_cert_verify_flags,
             tls_fault_certificate(e->esp_tls_stack_err, e->esp_tls_cert_verify_flags));
}

static void explain_tcp(fault_t *fault, const esp_mqtt_error_codes_t *e) {
    int code = e->esp_transport_sock_errno;
    fault->status = ESP_ERR_NOT_FOUND;
    snprintf(fault->what, sizeof(fault->what), "unreachable: %s (esp_tls 0x%x, errno %d)",
             code != 0 ? strerror(code) : "no answer", (unsigned)e->esp_tls_last_esp_err, code);
}

static void explain(fault_t *fault, const mqtt_link_t *link) {
    const esp_mqtt_error_codes_t *e = &link->error;
    fault->owner = tls_fault_owner(e->esp_tls_last_esp_err, e->esp_tls_stack_err);
    if (e->error_type == MQTT_ERROR_TYPE_CONNECTION_REFUSED) {
        explain_refusal(fault, e->connect_return_code);
    } else if (e->error_type == MQTT_ERROR_TYPE_SUBSCRIBE_FAILED) {
        fault->status = ESP_ERR_NOT_ALLOWED;
        snprintf(fault->what, sizeof(fault->what), "refused to let it subscribe to %s", link->subscribe);
    } else if (e->esp_tls_stack_err != 0 || e->esp_tls_cert_verify_flags != 0) {
        explain_tls(fault, e);
    } else {
        explain_tcp(fault, e);
    }
}

esp_err_t mqtt_link_fail(const mqtt_link_t *link, EventBits_t bits) {
    fault_t fault = {.status = ESP_ERR_TIMEOUT, .owner = BENCH_OWNER_RIG};
    if ((bits & ERROR_BIT) == 0) {
        snprintf(fault.what, sizeof(fault.what), "no answer in %d ms", CONNECT_TIMEOUT_MS);
    } else {
        explain(&fault, link);
    }
    return bench_fail(link->samples, fault.owner, fault.status, "MQTT broker %s:%u (%s): %s",
                      bench_provision(link->run)->broker_host, (unsigned)mqtt_link_port(link),
                      mqtt_link_transports[link->transport], fault.what);
}
