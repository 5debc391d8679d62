/* SPDX-License-Identifier: Apache-2.0 */
/* publish: what it takes to get a reading from a producer task to the broker.
 *
 * A producer task puts sample numbers into a ring under a mutex, a publisher task takes them out, serialises
 * JSON and publishes. The producer's plan is open loop: it is fixed before the clock starts, latency counts
 * from the planned time, and a sample that finds the ring full is an overrun, not a gap.
 *
 *   planned_us, sent_us, done_us   since t0; sent is right before the publish call, done is the PUBLISHED
 *                                  event (QoS 1, 2) or the board's own message coming back (QoS 0); 0 if it
 *                                  never was
 *   outcome                        0 ok, 1 timeout, 2 refused, 3 outbox_full, 4 overrun
 *   mutex_wait_us, serialise_us, publish_call_us
 */
#include "agent/bench.h"
#include "mqtt_link/publisher.h"

static const mqtt_publisher_columns_t PLACES = {
    .planned_us = 0,
    .sent_us = 1,
    .done_us = 2,
    .outcome = 3,
    .mutex_wait_us = 4,
    .serialise_us = 5,
    .publish_call_us = 6,
    .connection = MQTT_NO_COLUMN,
    .tcp = MQTT_NO_COLUMN,
    .copies = MQTT_NO_COLUMN,
    .order = MQTT_NO_COLUMN,
};

static void set_up(mqtt_publisher_t *p) {
    bool by_echo = p->qos == 0;
    p->columns = &PLACES;
    p->leaf = "publish";
    p->echo_leaf = by_echo ? "publish" : NULL;
    p->flight.done_by = by_echo ? MQTT_DONE_BY_ECHO : MQTT_DONE_BY_ACK;
    mqtt_publisher_read_load(p);
}

static esp_err_t run(const bench_run_t *bench_run, bench_samples_t *samples) {
    return mqtt_publisher_bench(bench_run, samples, set_up);
}

static const bench_parameter_t PARAMETERS[] = {
    {.key = "transport", .type = BENCH_CHOICE, .choices = mqtt_link_transports},
    {.key = "producer_core", .type = BENCH_CHOICE, .choices = load_cores},
    {.key = "publisher_core", .type = BENCH_CHOICE, .choices = load_cores},
    {.key = "schedule", .type = BENCH_CHOICE, .choices = load_schedules},
    {.key = "interval_us", .type = BENCH_INT, .def = 20000, .min = 500, .max = 60000000},
    {.key = "count", .type = BENCH_INT, .def = 100, .min = 1, .max = 100000},
    {.key = "warmup", .type = BENCH_INT, .def = 10, .min = 0, .max = 1000},
    {.key = "payload_bytes",
     .type = BENCH_INT,
     .def = 128,
     .min = LOAD_MESSAGE_MIN_BYTES,
     .max = LOAD_MESSAGE_MAX_BYTES},
    {.key = "qos", .type = BENCH_INT, .def = 1, .min = 0, .max = 2},
    {.key = "retain", .type = BENCH_INT, .def = 0, .min = 0, .max = 1},
    {.key = "nodelay", .type = BENCH_INT, .def = 1, .min = 0, .max = 1},
    {.key = "api", .type = BENCH_CHOICE, .choices = mqtt_publisher_apis},
    {.key = "hold_us", .type = BENCH_INT, .def = 0, .min = 0, .max = 1000000},
    {.key = "seed", .type = BENCH_INT, .def = 1, .min = 1, .max = UINT32_MAX},
    {.key = "timeout_ms", .type = BENCH_INT, .def = 5000, .min = 100, .max = 60000},
};

static const char *const COLUMNS[] = {"planned_us",    "sent_us",      "done_us",        "outcome",
                                      "mutex_wait_us", "serialise_us", "publish_call_us"};

const bench_t bench_publish = {
    .name = "publish",
    .parameters = PARAMETERS,
    .parameter_count = sizeof(PARAMETERS) / sizeof(PARAMETERS[0]),
    .columns = COLUMNS,
    .column_count = sizeof(COLUMNS) / sizeof(COLUMNS[0]),
    .run = run,
};
