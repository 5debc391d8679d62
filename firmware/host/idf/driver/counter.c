/* SPDX-License-Identifier: Apache-2.0 */
#include "counter.h"

#define NS_PER_S 1000000000
#define FAR_S 1000000000 /* 32 years: beyond it there is no alarm */

static uint64_t ticks_in(const counter_t *counter, int64_t ns) {
    uint64_t s = (uint64_t)ns / NS_PER_S;
    uint64_t rest_ns = (uint64_t)ns % NS_PER_S;
    return s * counter->resolution_hz + rest_ns * counter->resolution_hz / NS_PER_S;
}

/* Rounded up: not before the last tick has passed. */
static int64_t ns_of(const counter_t *counter, uint64_t ticks) {
    uint64_t rest = ticks % counter->resolution_hz * NS_PER_S;
    return (int64_t)(ticks / counter->resolution_hz * NS_PER_S +
                     (rest + counter->resolution_hz - 1) / counter->resolution_hz);
}

static uint64_t count_at(const counter_t *counter, int64_t now_ns) {
    uint64_t ticks = counter->runs ? ticks_in(counter, now_ns - counter->base_ns) : 0;
    return counter->up ? counter->base_count + ticks : counter->base_count - ticks;
}

static bool has_passed(const counter_t *counter) {
    return counter->up ? counter->base_count > counter->alarm.alarm_count
                       : counter->base_count < counter->alarm.alarm_count;
}

static int64_t alarm_after_base_ns(const counter_t *counter) {
    uint64_t ticks = counter->up ? counter->alarm.alarm_count - counter->base_count
                                 : counter->base_count - counter->alarm.alarm_count;
    bool far = ticks / counter->resolution_hz >= FAR_S;
    return far ? COUNTER_NEVER_NS : counter->base_ns + ns_of(counter, ticks);
}

static void alarm_happens(counter_t *counter) {
    counter->pending = true;
    counter->armed = false;
    if (counter->alarm.reloads) {
        counter->base_count = counter->alarm.reload_count;
        counter->base_ns = counter->alarm_ns;
    }
}

static void catch_up(counter_t *counter, int64_t now_ns) {
    if (counter->runs && counter->armed && counter->alarm_ns <= now_ns) {
        alarm_happens(counter);
    }
}

/* The base becomes the last tick, so that no part of one is lost. */
static void move_base(counter_t *counter, int64_t now_ns) {
    if (counter->runs) {
        uint64_t ticks = ticks_in(counter, now_ns - counter->base_ns);
        counter->base_count = count_at(counter, now_ns);
        counter->base_ns += (int64_t)(ticks / counter->resolution_hz * NS_PER_S +
                                      ticks % counter->resolution_hz * NS_PER_S / counter->resolution_hz);
    } else {
        counter->base_ns = now_ns;
    }
}

static void find_alarm(counter_t *counter, int64_t now_ns) {
    counter->alarm_ns = has_passed(counter) ? now_ns : alarm_after_base_ns(counter);
}

uint64_t counter_read(counter_t *counter, int64_t now_ns) {
    catch_up(counter, now_ns);
    return count_at(counter, now_ns);
}

void counter_write(counter_t *counter, uint64_t count, int64_t now_ns) {
    catch_up(counter, now_ns);
    counter->base_count = count;
    counter->base_ns = now_ns;
    find_alarm(counter, now_ns);
}

void counter_run(counter_t *counter, bool runs, int64_t now_ns) {
    catch_up(counter, now_ns);
    move_base(counter, now_ns);
    counter->runs = runs;
    find_alarm(counter, now_ns);
}

void counter_set_alarm(counter_t *counter, counter_alarm_t alarm, bool armed, int64_t now_ns) {
    catch_up(counter, now_ns);
    counter->alarm = alarm;
    counter_arm(counter, armed, now_ns);
}

void counter_arm(counter_t *counter, bool armed, int64_t now_ns) {
    catch_up(counter, now_ns);
    move_base(counter, now_ns);
    counter->armed = armed;
    find_alarm(counter, now_ns);
}

bool counter_take_alarm(counter_t *counter, int64_t now_ns) {
    catch_up(counter, now_ns);
    if (!counter->pending) {
        return false;
    }
    counter->pending = false;
    if (counter->alarm.reloads) {
        counter->armed = true;
        counter->alarm_ns = has_passed(counter) ? COUNTER_NEVER_NS : alarm_after_base_ns(counter);
    }
    return true;
}

int64_t counter_next_ns(const counter_t *counter) {
    if (counter->pending) {
        return counter->base_ns;
    }
    return counter->runs && counter->armed ? counter->alarm_ns : COUNTER_NEVER_NS;
}
