/* SPDX-License-Identifier: Apache-2.0 */
/* mqtt_link/fault.c: whose fault a missing connection is, where no broker can bring it about. */
#include "esp_tls_errors.h"
#include "expect.h"
#include "mqtt_link/link.h"
#include "private.h"
#include "samples_private.h"

static bench_samples_t s_samples;

static void check(esp_mqtt_error_codes_t error, EventBits_t bits, bench_owner_t owner, esp_err_t status,
                  const char *said) {
    mqtt_link_t link = {.samples = &s_samples, .transport = MQTT_LINK_TLS, .error = error};
    EXPECT(mqtt_link_fail(&link, bits) == status);
    EXPECT(s_samples.owner == owner);
    EXPECT(strstr(s_samples.error, said) != NULL);
}

static esp_mqtt_error_codes_t tls(esp_err_t esp_err, int stack_err) {
    return (esp_mqtt_error_codes_t){
        .error_type = MQTT_ERROR_TYPE_TCP_TRANSPORT,
        .esp_tls_last_esp_err = esp_err,
        .esp_tls_stack_err = stack_err,
    };
}

static void out_of_memory_is_the_firmwares(void) {
    check(tls(ESP_ERR_MBEDTLS_SSL_HANDSHAKE_FAILED, 0x7F00), ERROR_BIT, BENCH_OWNER_FIRMWARE,
          ESP_ERR_INVALID_RESPONSE, "mbedtls -0x7f00");
    check(tls(ESP_ERR_NO_MEM, 0), ERROR_BIT, BENCH_OWNER_FIRMWARE, ESP_ERR_NOT_FOUND, "esp_tls 0x101");
    check(tls(ESP_ERR_ESP_TLS_CANNOT_CREATE_SOCKET, 0), ERROR_BIT, BENCH_OWNER_FIRMWARE, ESP_ERR_NOT_FOUND,
          "esp_tls 0x8002");
}

static void a_failed_handshake_is_the_rigs(void) {
    check(tls(ESP_ERR_MBEDTLS_SSL_HANDSHAKE_FAILED, 0x7780), ERROR_BIT, BENCH_OWNER_RIG,
          ESP_ERR_INVALID_RESPONSE,
          "mbedtls -0x7780, certificate flags 0x0: the other side refuses, such as");
    /* without flags, as ESP-IDF reports a certificate that was not accepted */
    check(tls(ESP_ERR_MBEDTLS_SSL_HANDSHAKE_FAILED, 0x2700), ERROR_BIT, BENCH_OWNER_RIG,
          ESP_ERR_INVALID_RESPONSE,
          "flags 0x0: signed by another CA, made out to another host, or not valid");
}

static void silence_is_the_rigs(void) {
    check((esp_mqtt_error_codes_t){0}, 0, BENCH_OWNER_RIG, ESP_ERR_TIMEOUT, "no answer in 30000 ms");
    check(tls(ESP_ERR_ESP_TLS_CONNECTION_TIMEOUT, 0), ERROR_BIT, BENCH_OWNER_RIG, ESP_ERR_NOT_FOUND,
          "unreachable: no answer (esp_tls 0x8006, errno 0)");
}

int main(void) {
    out_of_memory_is_the_firmwares();
    a_failed_handshake_is_the_rigs();
    silence_is_the_rigs();
    return 0;
}
