/* SPDX-License-Identifier: Apache-2.0 */
/* An agent whose one bench talks with a peer on the host, which it asks for by notes; for the harness to play
 * the peer. Without PEER in the environment there is nobody to talk to, and nothing to do. */
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/agent.h"
#include "esp_timer.h"
#include "expect.h"
#include "freertos/FreeRTOS.h"
#include "freertos/task.h"
#include "run.h"

enum { RETRY_MS = 50, COLUMN_DONE = 0 };

static int connect_peer(const agent_provision_t *told) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(told->peer_port)};
    if (inet_pton(AF_INET, told->peer_host, &address.sin_addr) != 1) {
        return -1;
    }
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0) {
        return fd;
    }
    if (fd >= 0) {
        close(fd);
    }
    return -1;
}

/* Ask for the peer again and again: a note may be lost. */
static int await_peer(const bench_run_t *run) {
    const agent_provision_t *told = bench_provision(run);
    int fd = -1;
    for (unsigned attempt = 1; fd < 0 && !bench_aborted(run); attempt++) {
        bench_note(run, "ready", "attempt=%u text=%s", attempt, "50%");
        vTaskDelay(pdMS_TO_TICKS(RETRY_MS));
        fd = connect_peer(told);
    }
    return fd;
}

static bool echo(int fd) {
    char byte = 'x';
    return send(fd, &byte, 1, MSG_NOSIGNAL) == 1 && recv(fd, &byte, 1, 0) == 1 && byte == 'x';
}

static esp_err_t run(const bench_run_t *run, bench_samples_t *samples) {
    size_t count = (size_t)bench_param_int(run, "count");
    esp_err_t err = bench_samples_begin(samples, count, 0);
    if (bench_provision(run)->peer_host[0] == '\0') {
        return bench_fail(samples, BENCH_OWNER_CONFIGURATION, ESP_ERR_INVALID_STATE,
                          "no peer was provisioned");
    }
    int fd = err == ESP_OK ? await_peer(run) : -1;
    if (fd < 0) {
        return ESP_FAIL;
    }
    int64_t t0 = esp_timer_get_time();
    for (size_t row = 0; row < count && err == ESP_OK; row++) {
        err = echo(fd) ? ESP_OK : bench_fail(samples, BENCH_OWNER_FIRMWARE, ESP_FAIL, "the peer fell silent");
        bench_samples_set(samples, row, COLUMN_DONE, (uint32_t)(esp_timer_get_time() - t0));
    }
    close(fd);
    return err;
}

static const bench_parameter_t PARAMETERS[] = {
    {.key = "count", .type = BENCH_INT, .def = 3, .min = 1, .max = 100},
};
static const char *const COLUMNS[] = {"done_us"};
static const bench_t EXAMPLE = {
    .name = "example",
    .parameters = PARAMETERS,
    .parameter_count = 1,
    .columns = COLUMNS,
    .column_count = 1,
    .run = run,
};
const bench_entry_t bench_table[] = {
    {&EXAMPLE, "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"},
};
const size_t bench_table_length = 1;

void app_main(void) {
    if (getenv("PEER") == NULL) {
        exit(EXIT_SUCCESS);
    }
    EXPECT(agent_start() == ESP_OK);
}
