/* SPDX-License-Identifier: Apache-2.0 */
#include "mqtt_link/tls_fault.h"

#include <stdbool.h>
#include <stddef.h>

#include "esp_tls_errors.h"

/* Certificate flags, mbedtls/x509.h. */
enum {
    BADCERT_EXPIRED = 0x01,
    BADCERT_CN_MISMATCH = 0x04,
    BADCERT_NOT_TRUSTED = 0x08,
    BADCERT_FUTURE = 0x200
};

enum {
    CERT_VERIFY_FAILED = 0x2700, /* MBEDTLS_ERR_X509_CERT_VERIFY_FAILED */
    FATAL_ALERT = 0x7780         /* MBEDTLS_ERR_SSL_FATAL_ALERT_MESSAGE */
};

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

bench_owner_t tls_fault_owner(esp_err_t error, int stack_error) {
    switch (error) {
    case ESP_ERR_NO_MEM:
    case ESP_ERR_ESP_TLS_CANNOT_CREATE_SOCKET:
    case ESP_ERR_ESP_TLS_SOCKET_SETOPT_FAILED:
    case ESP_ERR_MBEDTLS_CTR_DRBG_SEED_FAILED:
    case ESP_ERR_MBEDTLS_SSL_CONFIG_DEFAULTS_FAILED:
    case ESP_ERR_MBEDTLS_SSL_SETUP_FAILED:
        return BENCH_OWNER_FIRMWARE;
    default:
        return is_tls_out_of_memory(stack_error) ? BENCH_OWNER_FIRMWARE : BENCH_OWNER_RIG;
    }
}

const char *tls_fault_certificate(int stack_error, int flags) {
    if ((flags & BADCERT_NOT_TRUSTED) != 0) {
        return ": signed by another CA than the one provisioned";
    }
    if ((flags & BADCERT_CN_MISMATCH) != 0) {
        return ": made out to another host";
    }
    if ((flags & (BADCERT_EXPIRED | BADCERT_FUTURE)) != 0) {
        return ": not valid at this time";
    }
    if (stack_error == FATAL_ALERT) {
        return ": the other side refuses, such as a client's certificate";
    }
    return stack_error == CERT_VERIFY_FAILED
               ? ": signed by another CA, made out to another host, or not valid now"
               : "";
}
