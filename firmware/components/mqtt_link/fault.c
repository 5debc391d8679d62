/* Why there is no connection: a sentence, a status, and whose fault it is. */
#include <stdio.h>
#include <string.h>

#include "esp_tls_errors.h"
#include "private.h"

/* Certificate flags, mbedtls/x509.h. */
enum {
    BADCERT_EXPIRED = 0x01,
    BADCERT_CN_MISMATCH = 0x04,
    BADCERT_NOT_TRUSTED = 0x08,
    BADCERT_FUTURE = 0x200
};

typedef struct {
    esp_err_t status;
    bench_owner_t owner;
    char what[128];
} fault_t;

/* Out of memory, in mbedtls's words: MPI, PEM, X.509, PK, ECP, MD, CIPHER, SSL, each _ALLOC_FAILED. */
static bool is_tls_out_of_memory(int stack_err) {
    static const int codes[] = {0x0010, 0x1180, 0x2880, 0x3F80, 0x4D80, 0x5180, 0x6180, 0x7F00};
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        if (stack_err == codes[i]) {
            return true;
        }
    }
    return false;
}

/* What goes wrong on the board before a byte is sent is the firmware's: no memory, no socket, no entropy. */
static bench_owner_t owner_of(const esp_mqtt_error_codes_t *e) {
    switch (e->esp_tls_last_esp_err) {
    case ESP_ERR_NO_MEM:
    case ESP_ERR_ESP_TLS_CANNOT_CREATE_SOCKET:
    case ESP_ERR_ESP_TLS_SOCKET_SETOPT_FAILED:
    case ESP_ERR_MBEDTLS_CTR_DRBG_SEED_FAILED:
    case ESP_ERR_MBEDTLS_SSL_CONFIG_DEFAULTS_FAILED:
    case ESP_ERR_MBEDTLS_SSL_SETUP_FAILED:
        return BENCH_OWNER_FIRMWARE;
    default:
        return is_tls_out_of_memory(e->esp_tls_stack_err) ? BENCH_OWNER_FIRMWARE : BENCH_OWNER_RIG;
    }
}

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

static const char *certificate_problem(int flags) {
    if ((flags & BADCERT_NOT_TRUSTED) != 0) {
        return ": signed by another CA than the one provisioned";
    }
    if ((flags & BADCERT_CN_MISMATCH) != 0) {
        return ": made out to another host";
    }
    return (flags & (BADCERT_EXPIRED | BADCERT_FUTURE)) != 0 ? ": not valid at this time" : "";
}

static void explain_tls(fault_t *fault, const esp_mqtt_error_codes_t *e) {
    fault->status = ESP_ERR_INVALID_RESPONSE;
    snprintf(fault->what, sizeof(fault->what), "TLS failed: mbedtls -0x%04x, certificate flags 0x%x%s",
             (unsigned)e->esp_tls_stack_err, (unsigned)e->esp_tls_cert_verify_flags,
             certificate_problem(e->esp_tls_cert_verify_flags));
}

static void explain_tcp(fault_t *fault, const esp_mqtt_error_codes_t *e) {
    int code = e->esp_transport_sock_errno;
    fault->status = ESP_ERR_NOT_FOUND;
    snprintf(fault->what, sizeof(fault->what), "unreachable: %s (esp_tls 0x%x, errno %d)",
             code != 0 ? strerror(code) : "no answer", (unsigned)e->esp_tls_last_esp_err, code);
}

static void explain(fault_t *fault, const mqtt_link_t *link) {
    const esp_mqtt_error_codes_t *e = &link->error;
    fault->owner = owner_of(e);
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
