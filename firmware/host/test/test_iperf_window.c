/* SPDX-License-Identifier: Apache-2.0 */
/* iperf/options.c with port/built, as on a chip: lwIP takes any SO_RCVBUF, and TCP's windows are the build's.
 */
#include "iperf_rig.h"

static bool names(const char *text) {
    return strstr(s_sentence, text) != NULL;
}

/* This layer's sockets read back what was asked for, as lwIP's do with CONFIG_LWIP_SO_RCVBUF. */
static void another_window_is_refused_with_the_option_to_build_with(void) {
    int in_force = 0;
    CHECK_EQUAL(run_client(100, 4096, true, &in_force), ESP_ERR_NOT_SUPPORTED);
    CHECK(names("is 5760 bytes; build with CONFIG_LWIP_TCP_WND_DEFAULT=4096"));
    CHECK_EQUAL(s_owner, BENCH_OWNER_CONFIGURATION);
    CHECK_EQUAL(run_client(100, 4096, false, &in_force), ESP_ERR_NOT_SUPPORTED);
    CHECK(names("is 5760 bytes; build with CONFIG_LWIP_TCP_SND_BUF_DEFAULT=4096"));
}

/* Nobody answers, so these fail later; but the window is known by then. */
static void the_builds_own_is_taken_and_noted(void) {
    int in_force = 0;
    CHECK_EQUAL(run_client(100, CONFIG_LWIP_TCP_WND_DEFAULT, true, &in_force), ESP_ERR_TIMEOUT);
    CHECK_EQUAL(in_force, CONFIG_LWIP_TCP_WND_DEFAULT);
    CHECK_EQUAL(run_client(100, 0, false, &in_force), ESP_ERR_TIMEOUT);
    CHECK_EQUAL(in_force, CONFIG_LWIP_TCP_SND_BUF_DEFAULT);
}

void app_main(void) {
    listen_on_loopback();
    another_window_is_refused_with_the_option_to_build_with();
    the_builds_own_is_taken_and_noted();
    exit(EXIT_SUCCESS);
}
