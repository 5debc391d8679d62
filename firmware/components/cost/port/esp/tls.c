/* SPDX-License-Identifier: Apache-2.0 */
/* TLS 1.2 with ECDHE-ECDSA on P-256: both ends in one task, what they send each other in memory.
 *
 * All that is random comes from a generator with a fixed seed, key and certificate included: made at the
 * start and thrown away, they protect nothing.
 */
#include <stdlib.h>
#include <string.h>

#include "mbedtls/ctr_drbg.h"
#include "mbedtls/ecp.h"
#include "mbedtls/error.h"
#include "mbedtls/ssl.h"
#include "mbedtls/x509_crt.h"
#include "private.h"

#define COST_NAME "cost"

enum { PIPE_BYTES = 4096, CERTIFICATE_BYTES = 640, TURNS_MAX = 64 };

typedef struct {
    size_t begin, end;
    uint8_t bytes[PIPE_BYTES];
} pipe_t;

/* One end: it writes to one pipe and reads from the other. */
typedef struct {
    mbedtls_ssl_context ssl;
    mbedtls_ssl_config config;
    pipe_t *out, *in;
} end_t;

typedef struct {
    uint32_t seed;
    mbedtls_ctr_drbg_context random;
    mbedtls_pk_context key;
    mbedtls_x509_crt certificate;
    pipe_t to_server, to_client;
    end_t client, server;
} tls_t;

/* ---- what is random ---- */

static int fixed_entropy(void *context, unsigned char *bytes, size_t count) {
    uint32_t *seed = context;
    for (size_t i = 0; i < count; i++) {
        *seed = *seed * 1664525 + 1013904223;
        bytes[i] = (unsigned char)(*seed >> 24);
    }
    return 0;
}

static int make_key(tls_t *tls) {
    int err = mbedtls_pk_setup(&tls->key, mbedtls_pk_info_from_type(MBEDTLS_PK_ECKEY));
    return err != 0 ? err
                    : mbedtls_ecp_gen_key(MBEDTLS_ECP_DP_SECP256R1, mbedtls_pk_ec(tls->key),
                                          mbedtls_ctr_drbg_random, &tls->random);
}

/* It signs itself. */
static int write_certificate(tls_t *tls, mbedtls_x509write_cert *writer) {
    static const char name[] = "CN=" COST_NAME;
    unsigned char serial[] = {1}, der[CERTIFICATE_BYTES];
    mbedtls_x509write_crt_set_version(writer, MBEDTLS_X509_CRT_VERSION_3);
    mbedtls_x509write_crt_set_md_alg(writer, MBEDTLS_MD_SHA256);
    mbedtls_x509write_crt_set_subject_key(writer, &tls->key);
    mbedtls_x509write_crt_set_issuer_key(writer, &tls->key);
    int err = mbedtls_x509write_crt_set_serial_raw(writer, serial, sizeof(serial));
    err = err != 0 ? err : mbedtls_x509write_crt_set_subject_name(writer, name);
    err = err != 0 ? err : mbedtls_x509write_crt_set_issuer_name(writer, name);
    err = err != 0 ? err : mbedtls_x509write_crt_set_validity(writer, "19700101000000", "20991231235959");
    err = err != 0 ? err : mbedtls_x509write_crt_set_basic_constraints(writer, 1, -1);
    if (err != 0) {
        return err;
    }
    int length = mbedtls_x509write_crt_der(writer, der, sizeof(der), mbedtls_ctr_drbg_random, &tls->random);
    return length < 0 ? length
                      : mbedtls_x509_crt_parse_der(&tls->certificate, der + sizeof(der) - length,
                                                   (size_t)length); /* it was written at the end */
}

static int make_certificate(tls_t *tls) {
    mbedtls_x509write_cert writer;
    mbedtls_x509write_crt_init(&writer);
    int err = write_certificate(tls, &writer);
    mbedtls_x509write_crt_free(&writer);
    return err;
}

/* ---- both ends ---- */

static int put(void *context, const unsigned char *bytes, size_t count) {
    pipe_t *pipe = ((end_t *)context)->out;
    if (pipe->begin == pipe->end) {
        pipe->begin = pipe->end = 0;
    }
    if (count > PIPE_BYTES - pipe->end) {
        return MBEDTLS_ERR_SSL_WANT_WRITE;
    }
    memcpy(pipe->bytes + pipe->end, bytes, count);
    pipe->end += count;
    return (int)count;
}

static int take(void *context, unsigned char *bytes, size_t count) {
    pipe_t *pipe = ((end_t *)context)->in;
    size_t have = pipe->end - pipe->begin;
    if (have == 0) {
        return MBEDTLS_ERR_SSL_WANT_READ;
    }
    count = count < have ? count : have;
    memcpy(bytes, pipe->bytes + pipe->begin, count);
    pipe->begin += count;
    return (int)count;
}

static int set_up(tls_t *tls, end_t *end, int role) {
    int err = mbedtls_ssl_config_defaults(&end->config, role, MBEDTLS_SSL_TRANSPORT_STREAM,
                                          MBEDTLS_SSL_PRESET_DEFAULT);
    mbedtls_ssl_conf_rng(&end->config, mbedtls_ctr_drbg_random, &tls->random);
    if (role == MBEDTLS_SSL_IS_CLIENT) {
        mbedtls_ssl_conf_ca_chain(&end->config, &tls->certificate, NULL);
    } else {
        err = err != 0 ? err : mbedtls_ssl_conf_own_cert(&end->config, &tls->certificate, &tls->key);
    }
    err = err != 0 ? err : mbedtls_ssl_setup(&end->ssl, &end->config);
    if (role == MBEDTLS_SSL_IS_CLIENT) {
        err = err != 0 ? err : mbedtls_ssl_set_hostname(&end->ssl, COST_NAME);
    }
    mbedtls_ssl_set_bio(&end->ssl, end, put, take, NULL);
    return err;
}

static int create(tls_t *tls) {
    int err = mbedtls_ctr_drbg_seed(&tls->random, fixed_entropy, &tls->seed, NULL, 0);
    err = err != 0 ? err : make_key(tls);
    err = err != 0 ? err : make_certificate(tls);
    err = err != 0 ? err : set_up(tls, &tls->client, MBEDTLS_SSL_IS_CLIENT);
    return err != 0 ? err : set_up(tls, &tls->server, MBEDTLS_SSL_IS_SERVER);
}

static void init_end(end_t *end, pipe_t *out, pipe_t *in) {
    mbedtls_ssl_init(&end->ssl);
    mbedtls_ssl_config_init(&end->config);
    end->out = out;
    end->in = in;
}

static esp_err_t open_tls(cost_t *cost) {
    tls_t *tls = calloc(1, sizeof(*tls));
    cost->own = tls;
    if (tls == NULL) {
        return ESP_ERR_NO_MEM;
    }
    mbedtls_ctr_drbg_init(&tls->random);
    mbedtls_pk_init(&tls->key);
    mbedtls_x509_crt_init(&tls->certificate);
    init_end(&tls->client, &tls->to_server, &tls->to_client);
    init_end(&tls->server, &tls->to_client, &tls->to_server);
    int err = create(tls);
    return err == 0 ? ESP_OK
                    : bench_fail(cost->samples, BENCH_OWNER_FIRMWARE, ESP_FAIL,
                                 "TLS cannot be set up: mbedtls -0x%04x", (unsigned)-err);
}

static void free_end(end_t *end) {
    mbedtls_ssl_free(&end->ssl);
    mbedtls_ssl_config_free(&end->config);
}

static void close_tls(cost_t *cost) {
    tls_t *tls = cost->own;
    if (tls == NULL) {
        return;
    }
    free_end(&tls->client);
    free_end(&tls->server);
    mbedtls_x509_crt_free(&tls->certificate);
    mbedtls_pk_free(&tls->key);
    mbedtls_ctr_drbg_free(&tls->random);
    free(tls);
}

/* ---- a handshake: what the client does of it ---- */

static bool goes_on(int err) {
    return err == 0 || err == MBEDTLS_ERR_SSL_WANT_READ || err == MBEDTLS_ERR_SSL_WANT_WRITE;
}

/* One turn of the client, added to the repetition's end, which begins at 0. */
static int step_client(cost_t *cost, tls_t *tls) {
    cost_moment_t before, after;
    cost_mark(&before);
    int err = mbedtls_ssl_handshake(&tls->client.ssl);
    cost_mark(&after);
    cost->end.steps += after.steps - before.steps;
    cost->end.rounds += after.rounds - before.rounds;
    return err;
}

static bool shake_hands(cost_t *cost, tls_t *tls) {
    int client = MBEDTLS_ERR_SSL_WANT_READ, server = MBEDTLS_ERR_SSL_WANT_READ;
    uint32_t turns = 0;
    cost->begin = cost->end = (cost_moment_t){0};
    tls->to_client.begin = tls->to_client.end = tls->to_server.begin = tls->to_server.end = 0;
    while ((client != 0 || server != 0) && goes_on(client) && goes_on(server) && turns < TURNS_MAX) {
        if (client != 0) {
            client = step_client(cost, tls);
            turns++;
        }
        server = mbedtls_ssl_handshake(&tls->server.ssl);
    }
    cost->end.steps -= (uint64_t)(turns - 1) * cost->mark * cost->ticks; /* the last one's is known */
    return client == 0 && server == 0;
}

static bool repeat_handshake(cost_t *cost) {
    tls_t *tls = cost->own;
    return mbedtls_ssl_session_reset(&tls->client.ssl) == 0 &&
           mbedtls_ssl_session_reset(&tls->server.ssl) == 0 && shake_hands(cost, tls);
}

const cost_part_t cost_tls_handshake = {.open = open_tls, .repeat = repeat_handshake, .close = close_tls};

/* ---- a record: sealed by the client, opened by the server ---- */

static esp_err_t open_record(cost_t *cost) {
    esp_err_t err = open_tls(cost);
    if (err == ESP_OK && !shake_hands(cost, cost->own)) {
        err = bench_fail(cost->samples, BENCH_OWNER_FIRMWARE, ESP_FAIL, "the TLS handshake failed");
    }
    return err;
}

static bool repeat_record(cost_t *cost) {
    tls_t *tls = cost->own;
    static unsigned char got[COST_MAX_PAYLOAD_BYTES];
    cost_mark(&cost->begin);
    int sent = mbedtls_ssl_write(&tls->client.ssl, (const unsigned char *)cost->payload, cost->payload_bytes);
    int received = mbedtls_ssl_read(&tls->server.ssl, got, sizeof(got));
    cost_mark(&cost->end);
    return sent == (int)cost->payload_bytes && received == sent;
}

const cost_part_t cost_tls_record = {.open = open_record, .repeat = repeat_record, .close = close_tls};
