/* SPDX-License-Identifier: Apache-2.0 */
/* What esp_tls's error codes mean, for a sentence. */
#pragma once

#include "agent/bench.h"
#include "esp_err.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Whose fault a connection that failed is, by esp_tls's and Mbed TLS's (positive) codes. What goes wrong on
 * the board before a byte is sent is the firmware's: no memory, no socket, no entropy. */
bench_owner_t tls_fault_owner(esp_err_t error, int stack_error);

/* What is wrong with a certificate, by Mbed TLS's code and the verification flags: ": made out to another
 * host", or ": the other side refuses, …";
 * "" where it is not the certificate. The flags alone do not say: ESP-IDF v5.5 loses those of a handshake
 * that failed. */
const char *tls_fault_certificate(int stack_error, int flags);

#ifdef __cplusplus
}
#endif
