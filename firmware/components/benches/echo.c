/* SPDX-License-Identifier: Apache-2.0 */
/* echo: how long a message takes to the peer on the rack's host and back.
 *
 * The board publishes to a plan (mqtt_link/publisher.h), the peer sends the same bytes back with the same
 * QoS. A message is its number in six digits and payload_bytes of filler, so it may be as short as the digits
 * allow and as long as the memory does; its echo may come in pieces of the in buffer.
 *
 *   planned_us, sent_us, done_us   since t0; done is the last byte of the first echo, 0 if it never came
 *   outcome                        0 ok, 1 timeout, 2 refused, 3 outbox_full, 4 overrun
 *   publish_call_us                how long the call took
 *   copies                         how often the echo came until the last message of the burst had its
 *                                  outcome
 *   order                          in which place its first echo came, from 1; 0 never
 */
#include "agent/bench.h"
#include "mqtt_link/publisher.h"

static const mqtt_publisher_columns_t PLACES = {
    .planned_us = 0,
    .sent_us = 1,
    .done_us = 2,
    .outcome = 3,
    .publish_call_us = 4,
    .copies = 5,
    .order = 6,
    .mutex_wait_us = MQTT_NO_COLUMN,
    .serialise_us = MQTT_NO_COLUMN,
    .connection = MQTT_NO_COLUMN,
    .tcp = MQTT_NO_COLUMN,
};

static void set_up(mqtt_publisher_t *p) {
    p->columns = &PLACES;
    p->leaf = "echo";
    p->echo_leaf = "echo/back";
    p->link.subscribe_qos = p->qos;
    p->watches_tcp = true;
    p->message_bytes = LOAD_DIGITS + (size_t)bench_param_int(p->run, "payload_bytes");
    p->write = load_digits_write;
    p->flight.number_of = load_digits_number;
    p->flight.done_by = MQTT_DONE_BY_ECHO;
    mqtt_publisher_read_settings(p);
    p->settings.buffer_bytes = (int)bench_param_int(p->run, "buffer_bytes");
}

static esp_err_t run(const bench_run_t *bench_run, bench_samples_t *samples) {
    return mqtt_publisher_bench(bench_run, samples, set_up);
}

/* The host's parameters; the board has no use for them. */
static const char *const PERSISTENCES[] = {"off", "on", "each", NULL};
static const char *const AIRS[] = {"rack", "perfect", "lab", "crowded", "hotspot", NULL};
static const char *const LOSS_PATTERNS[] = {"independent", "bursts", NULL};

static const bench_parameter_t PARAMETERS[] = {
    {.key = "transport", .type = BENCH_CHOICE, .choices = mqtt_link_transports},
    {.key = "schedule", .type = BENCH_CHOICE, .choices = load_schedules},
    {.key = "interval_us", .type = BENCH_INT, .def = 1000000, .min = 500, .max = 60000000},
    {.key = "count", .type = BENCH_INT, .def = 60, .min = 1, .max = 100000},
    {.key = "warmup", .type = BENCH_INT, .def = 1, .min = 0, .max = 1000},
    {.key = "payload_bytes", .type = BENCH_INT, .def = 10, .min = 1, .max = 1048576},
    {.key = "qos", .type = BENCH_INT, .def = 1, .min = 0, .max = 2},
    {.key = "nodelay", .type = BENCH_INT, .def = 1, .min = 0, .max = 1},
    {.key = "inflight", .type = BENCH_INT, .def = 0, .min = 0, .max = 1000},
    {.key = "clean_session", .type = BENCH_INT, .def = 1, .min = 0, .max = 1},
    {.key = "seed", .type = BENCH_INT, .def = 1, .min = 1, .max = UINT32_MAX},
    {.key = "timeout_ms", .type = BENCH_INT, .def = 60000, .min = 100, .max = 600000},
    {.key = "outbox_limit_bytes", .type = BENCH_INT, .def = 0, .min = 0, .max = 16777216},
    {.key = "buffer_bytes", .type = BENCH_INT, .def = 1024, .min = 256, .max = 65536},
    {.key = "network_timeout_ms", .type = BENCH_INT, .def = 10000, .min = 500, .max = 60000},
    {.key = "reconnect_ms", .type = BENCH_INT, .def = 1000, .min = 100, .max = 60000},
    {.key = "broker_nodelay", .type = BENCH_INT, .def = 1, .min = 0, .max = 1},
    {.key = "echo_nodelay", .type = BENCH_INT, .def = 1, .min = 0, .max = 1},
    {.key = "broker_inflight", .type = BENCH_INT, .def = 20, .min = 0, .max = 1000},
    {.key = "persistence", .type = BENCH_CHOICE, .choices = PERSISTENCES},
    {.key = "air", .type = BENCH_CHOICE, .choices = AIRS},
    {.key = "delay_us", .type = BENCH_INT, .def = -1, .min = -1, .max = 1000000},
    {.key = "rate_up_kbit", .type = BENCH_INT, .def = 0, .min = 0, .max = 1000000},
    {.key = "rate_down_kbit", .type = BENCH_INT, .def = 0, .min = 0, .max = 1000000},
    {.key = "loss_up_ppm", .type = BENCH_INT, .def = 0, .min = 0, .max = 1000000},
    {.key = "loss_down_ppm", .type = BENCH_INT, .def = 0, .min = 0, .max = 1000000},
    {.key = "loss_pattern", .type = BENCH_CHOICE, .choices = LOSS_PATTERNS},
    {.key = "cut_every_ms", .type = BENCH_INT, .def = 0, .min = 0, .max = 600000},
    {.key = "turn", .type = BENCH_INT, .def = 0, .min = 0, .max = 99},
};

static const char *const COLUMNS[] = {"planned_us",      "sent_us", "done_us", "outcome",
                                      "publish_call_us", "copies",  "order"};

const bench_t bench_echo = {
    .name = "echo",
    .parameters = PARAMETERS,
    .parameter_count = sizeof(PARAMETERS) / sizeof(PARAMETERS[0]),
    .columns = COLUMNS,
    .column_count = sizeof(COLUMNS) / sizeof(COLUMNS[0]),
    .run = run,
};
