/* SPDX-License-Identifier: Apache-2.0 */
#include "http_link/server.h"

#include <errno.h>

#include "link.h"
#include "mqtt_link/tls_fault.h"

enum { SCHEME_HTTP, SCHEME_HTTPS };
enum { RESOLVE_ADDRESS, RESOLVE_NAME };
enum { KEEP_ALIVE_PROFILE, KEEP_ALIVE_NO, KEEP_ALIVE_YES };
enum { ALL_PROFILES = HTTP_GATEWAY_PROFILES, AS_PROFILE = -1 };
enum { KEEP_ALIVE_MS = 30000 };

const char *const http_server_schemes[] = {"http", "https", NULL};
const char *const http_server_resolves[] = {"address", "name", NULL};
const char *const http_server_keep_alives[] = {"profile", "0", "1", NULL};

/* The published benchmark's (mqtt-http-rtt), but for `agentoptions`' 200 sockets and 30 free ones, of which a
 * board has HTTP_LINK_MAX_SOCKETS; in the order of http_gateway_profiles. */
static const struct {
    uint32_t probe_interval_ms;
    bool keep_alive;
} PROFILES[HTTP_GATEWAY_PROFILES] = {
    {.probe_interval_ms = 2000, .keep_alive = false},
    {.probe_interval_ms = 2000, .keep_alive = true},
    {.probe_interval_ms = 100, .keep_alive = false},
};

/* What was not provisioned; NULL where all is there. */
static const char *missing(const agent_provision_t *provision, const http_link_config_t *server, bool named,
                           bool tls) {
    if (server->host[0] == '\0' || server->port == 0) {
        return named ? "the HTTP server's name or port" : "the HTTP server's address or port";
    }
    if (named && provision->dns_host[0] == '\0') {
        return "the name server";
    }
    return tls && provision->ca_pem[0] == '\0' ? "the CA certificate" : NULL;
}

esp_err_t http_server_read(const bench_run_t *run, bench_samples_t *samples, http_link_config_t *server) {
    const agent_provision_t *provision = bench_provision(run);
    bool named = bench_param_int(run, "resolve") == RESOLVE_NAME;
    bool tls = bench_param_int(run, "http") == SCHEME_HTTPS;
    *server = (http_link_config_t){
        .host = named ? provision->peer_name : provision->peer_host,
        .port = tls ? provision->peer_tls_port : provision->peer_port,
        .ca_pem = tls ? provision->ca_pem : NULL,
        .resume = bench_param_int(run, "resume") != 0,
        .sockets_max = HTTP_LINK_MAX_SOCKETS,
    };
    const char *absent = missing(provision, server, named, tls);
    if (absent != NULL) {
        return bench_fail(samples, BENCH_OWNER_CONFIGURATION, ESP_ERR_INVALID_STATE, "%s was not provisioned",
                          absent);
    }
    if (bench_param_int(run, "sockets_max") == 0) {
        return bench_fail(samples, BENCH_OWNER_CONFIGURATION, ESP_ERR_INVALID_ARG,
                          "sockets_max=0 leaves no connection; -1 is the profile's own");
    }
    if (named && link_set_dns(provision->dns_host) != ESP_OK) {
        return bench_fail(samples, BENCH_OWNER_CONFIGURATION, ESP_ERR_INVALID_ARG,
                          "%s cannot be asked for names: no IPv4 address, or the network is not up",
                          provision->dns_host);
    }
    return ESP_OK;
}

static bench_owner_t owner_of(const http_result_t *result) {
    bool ours = result->error == ENOMEM || result->error == ENFILE || result->error == EMFILE ||
                result->error == EMSGSIZE;
    return ours ? BENCH_OWNER_FIRMWARE : tls_fault_owner(result->tls_error, result->tls_stack_error);
}

esp_err_t http_server_check(const bench_run_t *run, bench_samples_t *samples,
                            const http_link_config_t *server) {
    http_link_config_t config = *server;
    http_link_t link;
    http_result_t result = {0};
    config.resume = false;
    esp_err_t err = http_link_create(&link, &config);
    if (err == ESP_OK) {
        http_link_get(&link, HTTP_GATEWAY_PROBE_PATH, NULL, HTTP_GATEWAY_PROBE_TIMEOUT_MS, &result);
    }
    http_link_delete(&link);
    if (err != ESP_OK || result.outcome == HTTP_OUTCOME_OK) {
        return err;
    }
    char why[128];
    http_link_explain(&result, why, sizeof(why));
    return bench_fail(samples, owner_of(&result), ESP_ERR_NOT_FOUND, "no answer from %s://%s:%u%s: %s",
                      bench_param_text(run, "http"), server->host, (unsigned)server->port,
                      HTTP_GATEWAY_PROBE_PATH, why);
}

size_t http_server_profile_count(const bench_run_t *run) {
    return bench_param_int(run, "profile") == ALL_PROFILES ? HTTP_GATEWAY_PROFILES : 1;
}

static esp_err_t add_profile(const bench_run_t *run, http_gateway_t *gateway, http_link_config_t config,
                             uint8_t profile) {
    int64_t keep_alive = bench_param_int(run, "keep_alive"), sockets = bench_param_int(run, "sockets_max");
    int64_t interval_ms = bench_param_int(run, "probe_interval_ms");
    bool keep =
        keep_alive == KEEP_ALIVE_PROFILE ? PROFILES[profile].keep_alive : keep_alive == KEEP_ALIVE_YES;
    config.free_max = keep ? HTTP_LINK_MAX_SOCKETS : 0;
    config.keep_alive_ms = keep ? KEEP_ALIVE_MS : 0;
    config.sockets_max = sockets == AS_PROFILE ? HTTP_LINK_MAX_SOCKETS : (uint8_t)sockets;
    return http_gateway_add(gateway, profile, &config,
                            interval_ms == AS_PROFILE ? PROFILES[profile].probe_interval_ms
                                                      : (uint32_t)interval_ms);
}

esp_err_t http_server_add_profiles(const bench_run_t *run, http_gateway_t *gateway,
                                   const http_link_config_t *server) {
    int64_t wanted = bench_param_int(run, "profile");
    esp_err_t err = ESP_OK;
    for (uint8_t profile = 0; err == ESP_OK && profile < HTTP_GATEWAY_PROFILES; profile++) {
        if (wanted == ALL_PROFILES || wanted == profile) {
            err = add_profile(run, gateway, *server, profile);
        }
    }
    return err;
}
