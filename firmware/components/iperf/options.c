/* SPDX-License-Identifier: Apache-2.0 */
/* -w and -M before there is a connection, -N on it: applied, noted as in force, and refused where the target
 * cannot. */
#include "port/port.h"
#include "sdkconfig.h"
#include "test.h"

/* What ESP-IDF's Kconfig lets both options be, without window scaling. */
enum { LWIP_WINDOW_MIN_BYTES = 2440, LWIP_WINDOW_MAX_BYTES = 65535 };

static int window_option(const iperf_test_t *test) {
    return iperf_sends(&test->settings) ? SO_SNDBUF : SO_RCVBUF;
}

/* What lwIP was built with. */
static int built_window(const iperf_test_t *test) {
    return iperf_sends(&test->settings) ? CONFIG_LWIP_TCP_SND_BUF_DEFAULT : CONFIG_LWIP_TCP_WND_DEFAULT;
}

/* The option's value; -1 where the socket layer does not have it. */
static int read_option(int socket_fd, int level, int option) {
    int value = -1;
    socklen_t size = sizeof(value);
    return getsockopt(socket_fd, level, option, &value, &size) == 0 ? value : -1;
}

static int read_window(const iperf_test_t *test, int socket_fd) {
    if (test->settings.protocol == IPERF_TCP && !iperf_port_has_tcp_windows()) {
        return built_window(test);
    }
    return read_option(socket_fd, SOL_SOCKET, window_option(test));
}

static int read_mss(int socket_fd) {
#ifdef TCP_MAXSEG /* lwIP has no such option: the size is that of the build */
    int value = read_option(socket_fd, IPPROTO_TCP, TCP_MAXSEG);
    return value >= 0 ? value : CONFIG_LWIP_TCP_MSS;
#else
    (void)socket_fd;
    return CONFIG_LWIP_TCP_MSS;
#endif
}

static esp_err_t fail_window(iperf_test_t *test, int in_force) {
    int asked = (int)test->settings.window_bytes;
    if (test->settings.protocol == IPERF_UDP) {
        return bench_fail(
            test->samples, BENCH_OWNER_CONFIGURATION, ESP_ERR_NOT_SUPPORTED,
            "window_bytes=%d cannot be set: UDP's buffer is %d bytes (-1: not known); build with "
            "CONFIG_LWIP_SO_RCVBUF=y to receive, or leave it 0",
            asked, in_force);
    }
    bool sends = iperf_sends(&test->settings);
    const char *what = sends ? "send buffer" : "receive window";
    const char *option = sends ? "CONFIG_LWIP_TCP_SND_BUF_DEFAULT" : "CONFIG_LWIP_TCP_WND_DEFAULT";
    if (asked < LWIP_WINDOW_MIN_BYTES || asked > LWIP_WINDOW_MAX_BYTES) {
        return bench_fail(test->samples, BENCH_OWNER_CONFIGURATION, ESP_ERR_NOT_SUPPORTED,
                          "window_bytes=%d cannot be set: the %s is %d bytes; build with %s=%d to %d", asked,
                          what, in_force, option, LWIP_WINDOW_MIN_BYTES, LWIP_WINDOW_MAX_BYTES);
    }
    return bench_fail(test->samples, BENCH_OWNER_CONFIGURATION, ESP_ERR_NOT_SUPPORTED,
                      "window_bytes=%d cannot be set: the %s is %d bytes; build with %s=%d", asked, what,
                      in_force, option, asked);
}

static esp_err_t apply_window(iperf_test_t *test, int socket_fd) {
    int asked = (int)test->settings.window_bytes;
    setsockopt(socket_fd, SOL_SOCKET, window_option(test), &asked, sizeof(asked));
    int in_force = read_window(test, socket_fd);
    return in_force == asked ? ESP_OK : fail_window(test, in_force);
}

static esp_err_t fail_mss(iperf_test_t *test, int in_force) {
    int asked = (int)test->settings.mss_bytes;
    return bench_fail(test->samples, BENCH_OWNER_CONFIGURATION, ESP_ERR_NOT_SUPPORTED,
                      "mss_bytes=%d cannot be set: the maximum segment is %d bytes; build with "
                      "CONFIG_LWIP_TCP_MSS=%d",
                      asked, in_force, asked);
}

static esp_err_t apply_mss(iperf_test_t *test, int socket_fd) {
    int asked = (int)test->settings.mss_bytes;
#ifdef TCP_MAXSEG
    if (setsockopt(socket_fd, IPPROTO_TCP, TCP_MAXSEG, &asked, sizeof(asked)) == 0) {
        return ESP_OK; /* how it came out is known when there is a connection */
    }
#endif
    return read_mss(socket_fd) == asked ? ESP_OK : fail_mss(test, read_mss(socket_fd));
}

esp_err_t iperf_apply_options(iperf_test_t *test, int socket_fd) {
    const iperf_settings_t *settings = &test->settings;
    esp_err_t err = settings->window_bytes > 0 ? apply_window(test, socket_fd) : ESP_OK;
    bool segmented = settings->protocol == IPERF_TCP && settings->mss_bytes > 0;
    return err == ESP_OK && segmented ? apply_mss(test, socket_fd) : err;
}

esp_err_t iperf_read_options(iperf_test_t *test) {
    const iperf_settings_t *settings = &test->settings;
    iperf_outcome_t *outcome = &test->outcome;
    outcome->window_bytes = read_window(test, test->socket);
    if (settings->protocol == IPERF_UDP) {
        return ESP_OK;
    }
    int nodelay = settings->nodelay;
    setsockopt(test->socket, IPPROTO_TCP, TCP_NODELAY, &nodelay, sizeof(nodelay));
    nodelay = read_option(test->socket, IPPROTO_TCP, TCP_NODELAY);
    outcome->nodelay = nodelay < 0 ? -1 : nodelay != 0;
    outcome->mss_bytes = read_mss(test->socket);
    bool larger = settings->mss_bytes > 0 && outcome->mss_bytes > (int)settings->mss_bytes;
    return larger ? fail_mss(test, outcome->mss_bytes) : ESP_OK;
}
