/* SPDX-License-Identifier: Apache-2.0 */
/* delivery: whether messages that a producer task hands to a publisher task reach a subscriber, and where
 * those that do not are lost.
 *
 * The board's part is an open-loop publisher (mqtt_link/publisher.h): a row is a message, its number in the
 * run is the row's. The board says what it knows of each; what was seen of it on the air, at the broker and
 * at the subscriber is the host's to say.
 *
 *   planned_us, sent_us, done_us   since t0; done is the PUBLISHED event (QoS 1, 2) or the return of the
 *                                  publish call (QoS 0); 0 if it never was
 *   outcome                        0 ok, 1 timeout, 2 refused, 3 outbox_full, 4 overrun
 *   mutex_wait_us, serialise_us, publish_call_us
 *                                  how long each took
 *   connection                     number of the connection at hand-over, from 1; 0 none
 *   tcp                            0 nothing is known to have been written, 1 never transmitted,
 *                                  2 transmitted, 3 acknowledged by TCP, 4 unknown
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
    .connection = 7,
    .tcp = 8,
    .copies = MQTT_NO_COLUMN,
    .order = MQTT_NO_COLUMN,
};

static void set_up(mqtt_publisher_t *p) {
    p->columns = &PLACES;
    p->leaf = "delivery";
    p->watches_tcp = true;
    p->flight.done_by = p->qos == 0 ? MQTT_DONE_BY_CALL : MQTT_DONE_BY_ACK;
    mqtt_publisher_read_load(p);
    mqtt_publisher_read_settings(p);
}

static esp_err_t run(const bench_run_t *bench_run, bench_samples_t *samples) {
    return mqtt_publisher_bench(bench_run, samples, set_up);
}

/* The host's parameters; the board has no use for them. */
static const char *const PERSISTENCES[] = {"off", "on", "each", NULL};
static const char *const AIRS[] = {"rack", "perfect", "lab", "crowded", "hotspot", NULL};
static const char *const FAULTS[] = {"none",
                                     "cut",
                                     "blackout",
                                     "wire",
                                     "stall",
                                     "kill",
                                     "slow_disk",
                                     "flood",
                                     "subscriber_drop",
                                     "subscriber_away",
                                     NULL};

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
    {.key = "outbox_limit_bytes", .type = BENCH_INT, .def = 32768, .min = 0, .max = 1048576},
    {.key = "network_timeout_ms", .type = BENCH_INT, .def = 10000, .min = 500, .max = 60000},
    {.key = "reconnect_ms", .type = BENCH_INT, .def = 1000, .min = 100, .max = 60000},
    {.key = "clean_session", .type = BENCH_INT, .def = 1, .min = 0, .max = 1},
    {.key = "inflight", .type = BENCH_INT, .def = 0, .min = 0, .max = 1000},
    {.key = "broker_nodelay", .type = BENCH_INT, .def = 1, .min = 0, .max = 1},
    {.key = "subscriber_nodelay", .type = BENCH_INT, .def = 1, .min = 0, .max = 1},
    {.key = "broker_inflight", .type = BENCH_INT, .def = 20, .min = 0, .max = 1000},
    {.key = "broker_queue", .type = BENCH_INT, .def = 1000, .min = 0, .max = 100000},
    {.key = "persistence", .type = BENCH_CHOICE, .choices = PERSISTENCES},
    {.key = "air", .type = BENCH_CHOICE, .choices = AIRS},
    {.key = "fault", .type = BENCH_CHOICE, .choices = FAULTS},
    {.key = "fault_after_ms", .type = BENCH_INT, .def = 1000, .min = 0, .max = 600000},
    {.key = "fault_ms", .type = BENCH_INT, .def = 500, .min = 0, .max = 60000},
    {.key = "fault_every_ms", .type = BENCH_INT, .def = 0, .min = 0, .max = 600000},
};

static const char *const COLUMNS[] = {"planned_us",      "sent_us",       "done_us",
                                      "outcome",         "mutex_wait_us", "serialise_us",
                                      "publish_call_us", "connection",    "tcp"};

const bench_t bench_delivery = {
    .name = "delivery",
    .parameters = PARAMETERS,
    .parameter_count = sizeof(PARAMETERS) / sizeof(PARAMETERS[0]),
    .columns = COLUMNS,
    .column_count = sizeof(COLUMNS) / sizeof(COLUMNS[0]),
    .run = run,
};
