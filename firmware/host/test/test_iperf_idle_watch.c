/* SPDX-License-Identifier: Apache-2.0 */
/* components/iperf: idle tasks are not watched while a test runs, and watched again however it ends. */
#include "idf_check.h"

#include "esp_task_wdt.h"
#include "iperf/iperf.h"
#include "lwip/sockets.h"
#include "samples_private.h"

enum { AMOUNT_BYTES = 100000, ALL_CORES = (1 << portNUM_PROCESSORS) - 1, PANICS = CONFIG_ESP_TASK_WDT_PANIC };

/* Linked with --wrap: the last configuration, and what the agent would say. */
esp_err_t __real_esp_task_wdt_reconfigure(const esp_task_wdt_config_t *config);
static esp_task_wdt_config_t s_config;
static agent_provision_t s_provision = {.peer_host = "127.0.0.1"};
static bool s_aborted;

esp_err_t __wrap_esp_task_wdt_reconfigure(const esp_task_wdt_config_t *config) {
    s_config = *config;
    return __real_esp_task_wdt_reconfigure(config);
}

const agent_provision_t *__wrap_bench_provision(const bench_run_t *run) {
    (void)run;
    return &s_provision;
}

bool __wrap_bench_aborted(const bench_run_t *run) {
    (void)run;
    return s_aborted;
}

static void check_watch(uint32_t idle_core_mask) {
    CHECK_EQUAL(s_config.idle_core_mask, idle_core_mask);
    CHECK_EQUAL(s_config.timeout_ms, CONFIG_ESP_TASK_WDT_TIMEOUT_S * 1000);
    CHECK_EQUAL(s_config.trigger_panic, PANICS);
}

static bench_samples_t s_samples;

static esp_err_t run_client(void) {
    const iperf_settings_t settings = {
        .protocol = IPERF_TCP,
        .length_bytes = 1000,
        .amount_bytes = AMOUNT_BYTES,
        .interval_us = 100000,
        .timeout_ms = 5000,
        .row_capacity = 100,
    };
    s_config = (esp_task_wdt_config_t){.idle_core_mask = UINT32_MAX};
    iperf_test_t *test = iperf_create(NULL, &s_samples, &settings);
    CHECK(test != NULL);
    esp_err_t err = iperf_run(test);
    iperf_delete(test);
    return err;
}

/* ---- the peer ---- */

static int s_listener;
static SemaphoreHandle_t s_peer_done;

static void listen_on_loopback(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    s_listener = socket(AF_INET, SOCK_STREAM, 0);
    CHECK_EQUAL(bind(s_listener, (struct sockaddr *)&address, size), 0);
    CHECK_EQUAL(listen(s_listener, 1), 0);
    CHECK_EQUAL(getsockname(s_listener, (struct sockaddr *)&address, &size), 0);
    s_provision.peer_port = ntohs(address.sin_port);
}

static void read_to_the_end(void *argument) {
    (void)argument;
    static char buffer[4096];
    int fd = accept(s_listener, NULL, NULL);
    CHECK(fd >= 0);
    int64_t total = 0;
    for (ssize_t count; (count = recv(fd, buffer, sizeof(buffer), 0)) > 0; total += count) {
        check_watch(0);
    }
    CHECK_EQUAL(total, AMOUNT_BYTES);
    close(fd);
    xSemaphoreGive(s_peer_done);
    vTaskDelete(NULL);
}

/* ---- */

static void a_whole_test_is_not_watched(void) {
    s_peer_done = xSemaphoreCreateBinary();
    spawn(read_to_the_end, NULL, 5, tskNO_AFFINITY);
    CHECK_EQUAL(run_client(), ESP_OK);
    CHECK(xSemaphoreTake(s_peer_done, portMAX_DELAY));
    check_watch(ALL_CORES);
}

static void an_aborted_one_is_watched_again(void) {
    s_aborted = true;
    CHECK_EQUAL(run_client(), ESP_ERR_INVALID_STATE);
    check_watch(ALL_CORES);
    s_aborted = false;
}

static void a_failed_one_is_watched_again(void) {
    close(s_listener);
    CHECK_EQUAL(run_client(), ESP_ERR_NOT_FOUND);
    check_watch(ALL_CORES);
}

void app_main(void) {
    listen_on_loopback();
    a_whole_test_is_not_watched();
    an_aborted_one_is_watched_again();
    a_failed_one_is_watched_again();
    exit(EXIT_SUCCESS);
}
