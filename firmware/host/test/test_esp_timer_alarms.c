/* SPDX-License-Identifier: Apache-2.0 */
/* The list of armed timers that this host shares with ESP-IDF's linux target: its order, the next alarm. */
#include "esp_timer_alarms.h"

#include "idf_check.h"

/* By alarm; among equal alarms the timer that was armed first; whoever comes to the front says so. */
static void test_order(void) {
    struct esp_timer *armed = NULL;
    struct esp_timer timers[4] = {0};
    CHECK_EQUAL(esp_timer_alarms_first_us(armed), INT64_MAX);
    CHECK(esp_timer_alarms_arm(&armed, &timers[0], 200));
    CHECK(!esp_timer_alarms_arm(&armed, &timers[1], 200));
    CHECK(!esp_timer_alarms_arm(&armed, &timers[2], 300));
    CHECK(esp_timer_alarms_arm(&armed, &timers[3], 100));
    static const int order[] = {3, 0, 1, 2};
    for (int i = 0; i < 4; i++) {
        struct esp_timer *first = &timers[order[i]];
        CHECK(armed == first && first->active);
        CHECK_EQUAL(esp_timer_alarms_first_us(armed), first->alarm_us);
        esp_timer_alarms_disarm(&armed, first);
        CHECK(!first->active);
    }
    CHECK(armed == NULL);
}

/* A timer is taken off wherever it stands; one that is not armed changes nothing. */
static void test_disarm(void) {
    struct esp_timer *armed = NULL;
    struct esp_timer timers[4] = {0};
    for (int i = 0; i < 3; i++) {
        esp_timer_alarms_arm(&armed, &timers[i], i);
    }
    esp_timer_alarms_disarm(&armed, &timers[1]);
    esp_timer_alarms_disarm(&armed, &timers[3]);
    CHECK(armed == &timers[0] && timers[0].next == &timers[2] && timers[2].next == NULL);
}

/* One period after the last alarm, however late; skip_unhandled_events gives the first still to come. */
static void test_next_alarm(void) {
    struct esp_timer timer = {.alarm_us = 1000, .period_us = 100};
    CHECK_EQUAL(esp_timer_alarms_next_us(&timer, 1010), 1100);
    CHECK_EQUAL(esp_timer_alarms_next_us(&timer, 1350), 1100);
    timer.skip_unhandled_events = true;
    CHECK_EQUAL(esp_timer_alarms_next_us(&timer, 1010), 1100);
    CHECK_EQUAL(esp_timer_alarms_next_us(&timer, 1100), 1200);
    CHECK_EQUAL(esp_timer_alarms_next_us(&timer, 1350), 1400);
}

int main(void) {
    test_order();
    test_disarm();
    test_next_alarm();
    return 0;
}
