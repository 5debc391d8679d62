/* SPDX-License-Identifier: Apache-2.0 */
/* The gateway's server and its profiles, as the parameters of the run and the provisioning say. */
#pragma once

#include <stddef.h>

#include "agent/bench.h"
#include "http_link/gateway.h"
#include "http_link/link.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Choices of the parameters `http`, `resolve` and `keep_alive`. */
extern const char *const http_server_schemes[];
extern const char *const http_server_resolves[];
extern const char *const http_server_keep_alives[];

/* Reads the parameters http, resolve and resume; with resolve=name, tells the network which name server to
 * ask.
 *
 * Returns ESP_OK, or what bench_fail() was told: something is not provisioned, or sockets_max is 0
 * (configuration). */
esp_err_t http_server_read(const bench_run_t *run, bench_samples_t *samples, http_link_config_t *server);

/* Probe it once, on a connection of its own, of which nothing is kept.
 *
 * Returns ESP_OK, or what bench_fail() was told: why there is no answer with status 200. */
esp_err_t http_server_check(const bench_run_t *run, bench_samples_t *samples,
                            const http_link_config_t *server);

/* Profiles at work: 1, or all. Reads the parameter profile. */
size_t http_server_profile_count(const bench_run_t *run);

/* Add the profiles to the gateway. Reads the parameters profile, keep_alive, sockets_max, probe_interval_ms.
 */
esp_err_t http_server_add_profiles(const bench_run_t *run, http_gateway_t *gateway,
                                   const http_link_config_t *server);

#ifdef __cplusplus
}
#endif
