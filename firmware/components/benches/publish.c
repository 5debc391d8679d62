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
#include <stdlib.h>

#include "agent/bench.h"
#include "esp_timer.h"
#include "load/bursts.h"
#include "load/message.h"
#include "load/pipeline.h"
#include "mqtt_link/flight.h"
#include "mqtt_link/link.h"

enum {
    COLUMN_PLANNED,
    COLUMN_SENT,
    COLUMN_DONE,
    COLUMN_OUTCOME,
    COLUMN_MUTEX,
    COLUMN_SERIALISE,
    COLUMN_CALL
};
enum { API_PUBLISH, API_ENQUEUE };

typedef struct {
    const bench_run_t *run;
    bench_samples_t *samples;
    int api, qos, retain;
    size_t payload_bytes, capacity;
    load_pipeline_t load;
    mqtt_link_t link;
    mqtt_flight_t flight;
    char topic[MQTT_LINK_TOPIC_SIZE];
    char *payload;
    int outbox_max_bytes;
} publish_t;

/* ---- the publisher's task ---- */

static int hand_over(publish_t *p) {
    int length = (int)p->payload_bytes;
    if (p->api == API_ENQUEUE) {
        return esp_mqtt_client_enqueue(p->link.client, p->topic, p->payload, length, p->qos, p->retain, true);
    }
    return esp_mqtt_client_publish(p->link.client, p->topic, p->payload, length, p->qos, p->retain);
}

static void note_outbox(publish_t *p) {
    int outbox_bytes = esp_mqtt_client_get_outbox_size(p->link.client);
    p->outbox_max_bytes = outbox_bytes > p->outbox_max_bytes ? outbox_bytes : p->outbox_max_bytes;
}

/* Publishes the oldest sample of the ring, if there is one. */
static bool publish_next(void *context) {
    publish_t *p = context;
    const load_plan_t *plan = &p->load.plan;
    size_t row = 0;
    uint32_t asked_us = load_now_us(plan);
    xSemaphoreTake(p->load.ring.mutex, portMAX_DELAY);
    uint32_t locked_us = load_now_us(plan);
    if (!load_ring_pop(&p->load.ring, &row)) {
        xSemaphoreGive(p->load.ring.mutex);
        return false;
    }
    load_message_write(p->payload, p->payload_bytes, p->flight.burst, row, plan->planned_us[row]);
    uint32_t serialised_us = load_now_us(plan);
    xSemaphoreGive(p->load.ring.mutex);
    uint32_t sent_us = load_now_us(plan);
    int result = hand_over(p);
    uint32_t returned_us = load_now_us(plan);
    bench_samples_set(p->samples, row, COLUMN_SENT, sent_us);
    bench_samples_set(p->samples, row, COLUMN_MUTEX, locked_us - asked_us);
    bench_samples_set(p->samples, row, COLUMN_SERIALISE, serialised_us - locked_us);
    bench_samples_set(p->samples, row, COLUMN_CALL, returned_us - sent_us);
    mqtt_flight_sent(&p->flight, row, result, sent_us);
    note_outbox(p);
    return true;
}

/* In the producer's task. */
static void overrun(void *context, size_t row) {
    publish_t *p = context;
    mqtt_flight_overrun(&p->flight, row);
}

/* ---- a burst ---- */

static void report(const publish_t *p) {
    bench_environment_int(p->samples, "t0_us", p->load.plan.t0_us);
    bench_environment_int(p->samples, "outbox_max_bytes", p->outbox_max_bytes);
    bench_environment_int(p->samples, "achieved_interval_us", mqtt_flight_interval_us(&p->flight));
    bench_environment_stack(p->samples, p->load.consumer_name, p->load.consumer_stack_free_min_bytes);
    mqtt_link_environment(&p->link);
}

static esp_err_t measure_burst(void *context, size_t rows, size_t warmup_rows) {
    publish_t *p = context;
    esp_err_t err = bench_samples_begin(p->samples, rows, warmup_rows);
    if (err != ESP_OK) {
        return err;
    }
    mqtt_flight_begin(&p->flight, rows);
    err = load_pipeline_run(&p->load, rows);
    if (err != ESP_OK) {
        return err;
    }
    mqtt_flight_land(&p->flight);
    if (load_plan_outlived(&p->load.plan)) {
        return bench_fail(p->samples, BENCH_OWNER_CONFIGURATION, ESP_ERR_INVALID_SIZE,
                          "the run took longer than 32-bit microseconds hold; give it fewer rows");
    }
    for (size_t row = 0; row < rows; row++) {
        bench_samples_set(p->samples, row, COLUMN_PLANNED, p->load.plan.planned_us[row]);
    }
    report(p);
    return bench_aborted(p->run) ? ESP_ERR_INVALID_STATE : ESP_OK;
}

/* ---- set-up and parameters ---- */

static void set_up_link(publish_t *p) {
    p->link = (mqtt_link_t){
        .run = p->run,
        .samples = p->samples,
        .transport = (mqtt_link_transport_t)bench_param_int(p->run, "transport"),
        .nodelay = bench_param_int(p->run, "nodelay") != 0,
        .subscribe = p->qos == 0 ? p->topic : NULL,
        .on_event = mqtt_flight_on_event,
        .context = &p->flight,
    };
    mqtt_link_topic(p->topic, "publish");
}

static void set_up(publish_t *p) {
    p->api = (int)bench_param_int(p->run, "api");
    p->qos = (int)bench_param_int(p->run, "qos");
    p->retain = (int)bench_param_int(p->run, "retain");
    p->payload_bytes = (size_t)bench_param_int(p->run, "payload_bytes");
    p->load = (load_pipeline_t){
        .consumer_name = "publisher", .consume = publish_next, .overrun = overrun, .context = p};
    load_pipeline_read(&p->load, p->run, "publisher_core");
    p->flight = (mqtt_flight_t){
        .run = p->run,
        .samples = p->samples,
        .plan = &p->load.plan,
        .timeout_us = (uint32_t)bench_param_int(p->run, "timeout_ms") * 1000,
        .by_echo = p->qos == 0,
        .done_column = COLUMN_DONE,
        .outcome_column = COLUMN_OUTCOME,
    };
    set_up_link(p);
}

static esp_err_t allocate(publish_t *p) {
    p->payload = malloc(p->payload_bytes);
    esp_err_t err = p->payload != NULL ? ESP_OK : ESP_ERR_NO_MEM;
    err = err != ESP_OK ? err : mqtt_flight_create(&p->flight, p->capacity);
    return err != ESP_OK ? err : load_pipeline_create(&p->load, p->run, p->capacity);
}

static void clean_up(publish_t *p) {
    mqtt_link_close(&p->link);
    mqtt_flight_delete(&p->flight);
    load_pipeline_delete(&p->load);
    free(p->payload);
    free(p);
}

static esp_err_t run_case(publish_t *p) {
    int64_t warmup = bench_param_int(p->run, "warmup"), rows = bench_param_int(p->run, "count") + warmup;
    p->capacity = load_burst_capacity(p->samples, rows);
    const char *problem = load_pipeline_conflict(&p->load, rows);
    if (problem == NULL && warmup > (int64_t)p->capacity) {
        problem = "warmup does not fit the first burst";
    }
    if (problem != NULL) {
        return bench_fail(p->samples, BENCH_OWNER_CONFIGURATION, ESP_ERR_INVALID_ARG, "%s", problem);
    }
    esp_err_t err = allocate(p);
    err = err != ESP_OK ? err : mqtt_link_open(&p->link);
    if (err != ESP_OK) {
        return err;
    }
    p->load.plan.t0_us = esp_timer_get_time();
    return load_bursts_run(p->samples, p->capacity, (size_t)rows, (size_t)warmup, measure_burst, p);
}

static esp_err_t run(const bench_run_t *bench_run, bench_samples_t *samples) {
    publish_t *p = calloc(1, sizeof(*p));
    if (p == NULL) {
        return ESP_ERR_NO_MEM;
    }
    p->run = bench_run;
    p->samples = samples;
    set_up(p);
    esp_err_t err = run_case(p);
    clean_up(p);
    return err;
}

static const char *const APIS[] = {"publish", "enqueue", NULL};

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
    {.key = "api", .type = BENCH_CHOICE, .choices = APIS},
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
