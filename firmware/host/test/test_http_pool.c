/* SPDX-License-Identifier: Apache-2.0 */
/* http_link: which connections are used again, tried again, waited for and given up. */
#include <poll.h>

#include "freertos/task.h"
#include "http_rig.h"

static void a_connection_is_used_again(void) {
    static const step_t steps[] = {{OK_ANSWER, KEEP}, {OK_ANSWER, KEEP}};
    rig_t rig;
    BEGIN(&rig, steps);
    EXPECT(get(&rig, LONG_MS) == HTTP_OUTCOME_OK && !rig.result.reused);
    EXPECT(get(&rig, LONG_MS) == HTTP_OUTCOME_OK && rig.result.reused);
    EXPECT(rig.result.dns_us == 0 && rig.result.tcp_us == 0 && rig.result.http_us > 0);
    EXPECT(rig.server.connections == 1);
    end(&rig);
}

/* Without a pool, after `Connection: close`, after more than was asked for, when dropped and when expired. */
static void a_connection_is_not_used_again(const step_t *first, uint8_t free_max, uint32_t keep_alive_ms,
                                           bool drop) {
    const step_t steps[] = {*first, {OK_ANSWER, KEEP}};
    rig_t rig;
    start_server(&rig.server, steps, 2);
    http_link_config_t config = config_of(rig.server.port, free_max);
    config.keep_alive_ms = keep_alive_ms;
    EXPECT(http_link_create(&rig.link, &config) == ESP_OK);
    EXPECT(get(&rig, LONG_MS) == HTTP_OUTCOME_OK);
    if (drop) {
        http_link_drop(&rig.link);
    }
    EXPECT(get(&rig, LONG_MS) == HTTP_OUTCOME_OK);
    EXPECT(!rig.result.reused && rig.server.connections == 2);
    end(&rig);
}

static void connections_are_given_up(void) {
    const step_t plain = {OK_ANSWER, KEEP};
    const step_t closing = {"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi", KEEP};
    const step_t talkative = {OK_ANSWER "HTTP/1.1 200 OK\r\n", KEEP};
    const step_t closed = {OK_ANSWER, CLOSE}; /* seen before the second GET, or by it */
    a_connection_is_not_used_again(&plain, 0, LONG_MS, false);
    a_connection_is_not_used_again(&plain, 2, 0, false);
    a_connection_is_not_used_again(&plain, 2, LONG_MS, true);
    a_connection_is_not_used_again(&closing, 2, LONG_MS, false);
    a_connection_is_not_used_again(&talkative, 2, LONG_MS, false);
    a_connection_is_not_used_again(&closed, 2, LONG_MS, false);
}

/* One that the server has closed by then is not even tried. */
static void a_closed_connection_is_seen(void) {
    static const step_t steps[] = {{OK_ANSWER, CLOSE}, {OK_ANSWER, KEEP}};
    rig_t rig;
    BEGIN(&rig, steps);
    EXPECT(get(&rig, LONG_MS) == HTTP_OUTCOME_OK && rig.link.idle_count == 1);
    struct pollfd end_of_it = {.fd = rig.link.idle[0].fd, .events = POLLIN};
    EXPECT(poll(&end_of_it, 1, LONG_MS) == 1);
    EXPECT(get(&rig, LONG_MS) == HTTP_OUTCOME_OK && !rig.result.reused && !rig.result.retried);
    end(&rig);
}

/* The server takes the second request and closes, as it may when its own keep-alive ends just then. */
static void a_get_is_tried_again_once(void) {
    static const step_t steps[] = {{OK_ANSWER, KEEP}, {"", CLOSE}, {OK_ANSWER, KEEP}};
    rig_t rig;
    BEGIN(&rig, steps);
    EXPECT(get(&rig, LONG_MS) == HTTP_OUTCOME_OK);
    EXPECT(get(&rig, LONG_MS) == HTTP_OUTCOME_OK);
    EXPECT(rig.result.retried && !rig.result.reused && rig.result.tcp_us + rig.result.dns_us > 0);
    EXPECT(rig.server.connections == 2);
    end(&rig);
}

static void and_only_once(void) {
    static const step_t steps[] = {{OK_ANSWER, KEEP}, {"", CLOSE}, {"", CLOSE}, {OK_ANSWER, KEEP}};
    rig_t rig;
    BEGIN(&rig, steps);
    EXPECT(get(&rig, LONG_MS) == HTTP_OUTCOME_OK);
    EXPECT(get(&rig, LONG_MS) == HTTP_OUTCOME_TRUNCATED && rig.result.retried);
    end(&rig);
}

/* Part of an answer came: the server has acted, so it is not asked again. */
static void half_an_answer_is_not_tried_again(void) {
    static const step_t steps[] = {{OK_ANSWER, KEEP}, {"HTTP/1.1 200", CLOSE}, {OK_ANSWER, KEEP}};
    rig_t rig;
    BEGIN(&rig, steps);
    EXPECT(get(&rig, LONG_MS) == HTTP_OUTCOME_OK);
    EXPECT(get(&rig, LONG_MS) == HTTP_OUTCOME_TRUNCATED && !rig.result.retried && rig.result.reused);
    end(&rig);
}

static void get_in_a_task(void *argument) {
    rig_t *rig = argument;
    http_result_t result;
    http_link_get(&rig->link, "/", NULL, 2 * SOON_MS, &result);
    EXPECT(result.outcome == HTTP_OUTCOME_TIMEOUT);
    xSemaphoreGive(rig->link.config.context);
    vTaskDelete(NULL);
}

/* With one socket, a second GET waits for the first one's, and for no longer than its own time. */
static void sockets_are_bounded(void) {
    static const step_t steps[] = {{"", HANG}};
    rig_t rig;
    start_server(&rig.server, steps, 1);
    http_link_config_t config = config_of(rig.server.port, 2);
    config.sockets_max = 1;
    config.context = xSemaphoreCreateBinary();
    EXPECT(http_link_create(&rig.link, &config) == ESP_OK);
    EXPECT(xTaskCreate(get_in_a_task, "first", 8192, &rig, 5, NULL) == pdTRUE);
    while (rig.server.connections == 0) {
        vTaskDelay(1);
    }
    EXPECT(get(&rig, SOON_MS) == HTTP_OUTCOME_TIMEOUT);
    EXPECT(rig.server.connections == 1 && rig.result.http_us == 0);
    EXPECT(xSemaphoreTake(config.context, pdMS_TO_TICKS(LONG_MS)) == pdTRUE);
    vSemaphoreDelete(config.context);
    end(&rig);
}

static bool is_set(void *context) {
    return *(bool *)context;
}

static void a_get_can_be_cancelled(void) {
    static const step_t steps[] = {{"", HANG}};
    bool cancelled = true;
    rig_t rig;
    start_server(&rig.server, steps, 1);
    http_link_config_t config = config_of(rig.server.port, 2);
    config.cancelled = is_set;
    config.context = &cancelled;
    EXPECT(http_link_create(&rig.link, &config) == ESP_OK);
    int64_t start_us = esp_timer_get_time();
    EXPECT(get(&rig, 6 * LONG_MS) == HTTP_OUTCOME_TIMEOUT);
    EXPECT(esp_timer_get_time() - start_us < (int64_t)LONG_MS * 1000);
    end(&rig);
}

void app_main(void) {
    a_connection_is_used_again();
    connections_are_given_up();
    a_closed_connection_is_seen();
    a_get_is_tried_again_once();
    and_only_once();
    half_an_answer_is_not_tried_again();
    sockets_are_bounded();
    a_get_can_be_cancelled();
    exit(EXIT_SUCCESS);
}
