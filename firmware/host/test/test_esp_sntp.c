/* SPDX-License-Identifier: Apache-2.0 */
/* SNTP: what is asked, what an answer does to the board's clock, and who is told. The server is played. */
#define _GNU_SOURCE
#include <sys/time.h>
#include <time.h>

#include "esp_event.h"
#include "esp_netif_sntp.h"
#include "esp_sntp.h"
#include "socket_rig.h"

enum { BYTES = 48, PRIORITY = 20 };

/* 2030-01-01 00:00:00 and a half, in NTP's seconds; the highest bit is set. */
#define TIME_2030 INT64_C(1893456000)
#define NTP_2030 (TIME_2030 + INT64_C(2208988800))

typedef enum { ANSWERS, IS_SILENT, SENDS_AWAY, ANSWERS_NONSENSE } behaviour_t;

static volatile behaviour_t s_behaviour;
static volatile int s_requests;
static uint8_t s_request[BYTES];
static volatile int s_told;
static struct timeval s_told_time;
static char s_told_task[16];
static int64_t s_seconds = NTP_2030;

uint32_t __wrap_esp_random(void) {
    return 0; /* no delay before the first request */
}

static void put(uint8_t *at, uint32_t value) {
    for (int i = 0; i < 4; i++) {
        at[i] = (uint8_t)(value >> (24 - 8 * i));
    }
}

static void serve(void *unused) {
    (void)unused;
    const struct sockaddr_in name = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(SNTP_PORT)};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    CHECK_EQUAL(bind(fd, (const struct sockaddr *)&name, sizeof name), 0);
    for (;;) {
        struct sockaddr_in client;
        socklen_t size = sizeof client;
        CHECK_EQUAL(recvfrom(fd, s_request, BYTES, 0, (struct sockaddr *)&client, &size), BYTES);
        uint8_t answer[BYTES] = {0x24, 2}; /* version 4, server; stratum 2 */
        put(answer + 40, (uint32_t)s_seconds);
        put(answer + 44, 0x80000000U);
        answer[0] = s_behaviour == ANSWERS_NONSENSE ? 0x23 : answer[0];
        answer[1] = s_behaviour == SENDS_AWAY ? 0 : answer[1];
        if (s_behaviour != IS_SILENT) {
            CHECK_EQUAL(sendto(fd, answer, BYTES, 0, (struct sockaddr *)&client, size), BYTES);
        }
        s_requests = s_requests + 1;
    }
}

static void on_time(struct timeval *tv) {
    s_told_time = *tv;
    snprintf(s_told_task, sizeof s_told_task, "%s", pcTaskGetName(NULL));
    s_told = s_told + 1;
}

static int64_t real_s(void) { /* the machine's, which nothing here may have set */
    struct timespec now;
    extern int __real_clock_gettime(clockid_t clock, struct timespec * time);
    __real_clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec;
}

static bool about(int64_t actual_s, int64_t expected_s) {
    return actual_s >= expected_s && actual_s <= expected_s + 10;
}

static void start(bool smooth) {
    esp_sntp_config_t config = ESP_NETIF_SNTP_DEFAULT_CONFIG("127.0.0.1");
    config.sync_cb = on_time;
    config.smooth_sync = smooth;
    s_requests = s_told = 0;
    CHECK_EQUAL(esp_netif_sntp_init(&config), ESP_OK);
    CHECK_EQUAL(esp_netif_sntp_init(&config), ESP_ERR_INVALID_STATE);
}

/* An answer sets the board's clock at once, whatever call asks for it; the callback is lwIP's task's. */
static void test_immediately(void) {
    unsigned reachability = 0;
    const int64_t before_s = real_s();
    CHECK(about(time(NULL), before_s)); /* until then the machine's */
    CHECK_EQUAL(esp_netif_sntp_sync_wait(0), ESP_ERR_INVALID_STATE);
    start(false);
    CHECK_EQUAL(esp_netif_sntp_sync_wait(pdMS_TO_TICKS(5000)), ESP_OK);
    CHECK_EQUAL(s_request[0], 0x23);
    CHECK_SOON(s_told == 1); /* who waits is woken before the callback is called, as on a chip */
    CHECK(s_told_time.tv_sec == TIME_2030 && s_told_time.tv_usec == 500000);
    CHECK(strcmp(s_told_task, "tiT") == 0);
    struct timeval now;
    struct timespec precise;
    gettimeofday(&now, NULL);
    clock_gettime(CLOCK_REALTIME, &precise);
    CHECK(about(now.tv_sec, TIME_2030) && about(precise.tv_sec, TIME_2030) && about(time(NULL), TIME_2030));
    CHECK(about(real_s(), before_s));
    CHECK_EQUAL(sntp_get_sync_status(), SNTP_SYNC_STATUS_COMPLETED);
    CHECK_EQUAL(sntp_get_sync_status(), SNTP_SYNC_STATUS_RESET);
    esp_sntp_init(); /* it runs: that asks nobody anew */
    vTaskDelay(pdMS_TO_TICKS(50));
    CHECK_EQUAL(esp_netif_sntp_reachability(0, &reachability), ESP_OK);
    CHECK_EQUAL(reachability, 1);
    CHECK_EQUAL(esp_netif_sntp_reachability(1, &reachability), ESP_ERR_INVALID_ARG);
    CHECK(strcmp(esp_sntp_getservername(0), "127.0.0.1") == 0);
    CHECK(strcmp(ipaddr_ntoa(esp_sntp_getserver(0)), "127.0.0.1") == 0);
    esp_netif_sntp_deinit();
    CHECK(!esp_sntp_enabled());
    CHECK_SOON(s_requests == 1); /* the next one is due in an hour */
}

/* A small difference is made good bit by bit, by 1/64 of the time that passes; a large one at once. */
static void test_smoothly(void) {
    struct timeval now, left;
    gettimeofday(&now, NULL);
    s_seconds = now.tv_sec + INT64_C(2208988800) + 100;
    start(true);
    CHECK_EQUAL(esp_netif_sntp_sync_wait(pdMS_TO_TICKS(5000)), ESP_ERR_NOT_FINISHED);
    CHECK(about(time(NULL), now.tv_sec));
    CHECK_EQUAL(adjtime(NULL, &left), 0);
    CHECK(left.tv_sec >= 98 && left.tv_sec <= 100);
    const int64_t before_us = (int64_t)left.tv_sec * 1000000 + left.tv_usec;
    vTaskDelay(pdMS_TO_TICKS(200));
    CHECK_EQUAL(adjtime(NULL, &left), 0);
    const int64_t moved_us = before_us - ((int64_t)left.tv_sec * 1000000 + left.tv_usec);
    CHECK(moved_us >= 200000 / 64 - 100 && moved_us < 200000);
    esp_netif_sntp_deinit();
    s_seconds = NTP_2030;
    settimeofday(&(struct timeval){.tv_sec = 1000}, NULL);
    start(true);
    CHECK_EQUAL(esp_netif_sntp_sync_wait(pdMS_TO_TICKS(5000)), ESP_OK); /* decades are too much for that */
    CHECK(about(time(NULL), TIME_2030));
    esp_netif_sntp_deinit();
    sntp_set_sync_mode(SNTP_SYNC_MODE_IMMED);
    const struct timeval hour = {.tv_sec = 3600};
    CHECK(adjtime(&hour, NULL) == -1 && errno == EINVAL);
}

/* Who does not answer, or sends away, is asked again after a while; what is no answer is ignored. */
static void test_no_answer(behaviour_t behaviour) {
    s_behaviour = behaviour;
    start(false);
    CHECK_EQUAL(esp_netif_sntp_sync_wait(pdMS_TO_TICKS(100)), ESP_ERR_TIMEOUT);
    CHECK_SOON(s_requests >= 2);
    CHECK_EQUAL(s_told, 0);
    s_behaviour = ANSWERS;
    CHECK_EQUAL(esp_netif_sntp_sync_wait(pdMS_TO_TICKS(5000)), ESP_OK);
    CHECK_EQUAL(esp_sntp_getreachability(0) & 7, 1); /* the last of three */
    esp_netif_sntp_deinit();
}

/* NTP's seconds begin again in 2036. */
static void test_next_era(void) {
    s_seconds = 1000;
    start(false);
    CHECK_EQUAL(esp_netif_sntp_sync_wait(pdMS_TO_TICKS(5000)), ESP_OK);
    CHECK_SOON(s_told == 1);
    CHECK_EQUAL(s_told_time.tv_sec, INT64_C(2085978496) + 1000);
    esp_netif_sntp_deinit();
    s_seconds = NTP_2030;
}

/* The service can be made first and started later; an interval is 15 s at least. */
static void test_start_later(void) {
    esp_sntp_config_t config = ESP_NETIF_SNTP_DEFAULT_CONFIG("127.0.0.1");
    config.start = false;
    s_requests = 0;
    CHECK_EQUAL(esp_netif_sntp_init(&config), ESP_OK);
    CHECK_EQUAL(esp_netif_sntp_sync_wait(pdMS_TO_TICKS(100)), ESP_ERR_TIMEOUT);
    CHECK_EQUAL(s_requests, 0);
    CHECK_EQUAL(esp_netif_sntp_start(), ESP_OK);
    CHECK_EQUAL(esp_netif_sntp_sync_wait(pdMS_TO_TICKS(5000)), ESP_OK);
    esp_netif_sntp_deinit();
    config.server_from_dhcp = true;
    CHECK_EQUAL(esp_netif_sntp_init(&config), ESP_ERR_INVALID_ARG);
    config = (esp_sntp_config_t){.num_of_servers = SNTP_MAX_SERVERS + 1};
    CHECK_EQUAL(esp_netif_sntp_init(&config), ESP_ERR_INVALID_ARG);
    sntp_set_sync_interval(1);
    CHECK_EQUAL(sntp_get_sync_interval(), 15000);
}

void app_main(void) {
    CHECK_EQUAL(esp_event_loop_create_default(), ESP_OK);
    spawn(serve, NULL, PRIORITY, tskNO_AFFINITY);
    test_immediately();
    test_smoothly();
    test_no_answer(IS_SILENT);
    test_no_answer(SENDS_AWAY);
    test_no_answer(ANSWERS_NONSENSE);
    test_next_era();
    test_start_later();
    _exit(0);
}
