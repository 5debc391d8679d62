/* SPDX-License-Identifier: Apache-2.0 */
/* From a bench's parameters to a publisher that runs; what it does then is in publisher_tasks.c. */
#include "mqtt_link/publisher.h"

#include <stdlib.h>
#include <string.h>

#include "esp_heap_caps.h"
#include "esp_random.h"
#include "esp_timer.h"
#include "load/bursts.h"
#include "publisher_private.h"

enum { API_PUBLISH, API_ENQUEUE };
const char *const mqtt_publisher_apis[] = {"publish", "enqueue", NULL};

static esp_err_t allocate_message(mqtt_publisher_t *p) {
    p->message = malloc(p->message_bytes);
    if (p->message == NULL) {
        return bench_fail(
            p->samples, BENCH_OWNER_FIRMWARE, ESP_ERR_NO_MEM,
            "no memory for a message of %u bytes: %u are free, %u of them in one piece; leave such "
            "cases out by max_payload_bytes in the limits of this board in the rack file",
            (unsigned)p->message_bytes, (unsigned)heap_caps_get_free_size(MALLOC_CAP_8BIT),
            (unsigned)heap_caps_get_largest_free_block(MALLOC_CAP_8BIT));
    }
    memset(p->message, 'x', p->message_bytes);
    return ESP_OK;
}

static esp_err_t allocate(mqtt_publisher_t *p) {
    esp_err_t err = allocate_message(p);
    err = err != ESP_OK ? err : mqtt_flight_create(&p->flight, p->capacity);
    if (p->watches_tcp) {
        p->watch.link = &p->link;
        p->watch.message_bytes = p->message_bytes;
        p->watch.resends = p->qos > 0;
        err = err != ESP_OK ? err : mqtt_tcp_watch_create(&p->watch, p->capacity);
    }
    return err != ESP_OK ? err : load_pipeline_create(&p->load, p->run, p->capacity);
}

static void aim(mqtt_publisher_t *p) {
    mqtt_link_topic(p->topic, p->leaf);
    if (p->echo_leaf != NULL) {
        mqtt_link_topic(p->echo_topic, p->echo_leaf);
        p->link.subscribe = p->echo_topic;
    }
    p->link.settings = &p->settings;
    p->flight.done_column = p->columns->done_us;
    p->flight.outcome_column = p->columns->outcome;
    p->flight.copies_column = p->columns->copies;
    p->flight.order_column = p->columns->order;
    p->flight.inflight = p->qos > 0 ? p->flight.inflight : 0; /* nothing acknowledges QoS 0 */
}

esp_err_t mqtt_publisher_run(mqtt_publisher_t *p) {
    int64_t warmup = bench_param_int(p->run, "warmup"), rows = bench_param_int(p->run, "count") + warmup;
    aim(p);
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
    return load_bursts_run(p->samples, p->capacity, (size_t)rows, (size_t)warmup, mqtt_publisher_measure, p);
}

mqtt_publisher_t *mqtt_publisher_create(const bench_run_t *run, bench_samples_t *samples) {
    mqtt_publisher_t *p = calloc(1, sizeof(*p));
    if (p == NULL) {
        return NULL;
    }
    p->run = run;
    p->samples = samples;
    p->qos = (int)bench_param_int(run, "qos");
    p->write = load_message_write;
    p->settings = mqtt_link_defaults;
    p->load = (load_pipeline_t){.consumer_name = "publisher",
                                .consume = mqtt_publisher_publish_next,
                                .overrun = mqtt_publisher_overrun,
                                .context = p};
    load_pipeline_read_plan(&p->load, run);
    p->flight = (mqtt_flight_t){
        .run = run,
        .samples = samples,
        .plan = &p->load.plan,
        .timeout_us = (uint32_t)bench_param_int(run, "timeout_ms") * 1000,
        .number_of = load_message_number,
        .message_run = esp_random(),
    };
    p->link = (mqtt_link_t){
        .run = run,
        .samples = samples,
        .transport = (mqtt_link_transport_t)bench_param_int(run, "transport"),
        .nodelay = bench_param_int(run, "nodelay") != 0,
        .on_event = mqtt_publisher_on_event,
        .context = p,
    };
    return p;
}

void mqtt_publisher_read_load(mqtt_publisher_t *p) {
    p->enqueue = bench_param_int(p->run, "api") == API_ENQUEUE;
    p->retain = (int)bench_param_int(p->run, "retain");
    p->message_bytes = (size_t)bench_param_int(p->run, "payload_bytes");
    load_pipeline_read(&p->load, p->run, "publisher_core");
}

void mqtt_publisher_read_settings(mqtt_publisher_t *p) {
    p->settings.outbox_limit_bytes = (uint32_t)bench_param_int(p->run, "outbox_limit_bytes");
    p->settings.network_timeout_ms = (int)bench_param_int(p->run, "network_timeout_ms");
    p->settings.reconnect_ms = (int)bench_param_int(p->run, "reconnect_ms");
    p->settings.keep_session = bench_param_int(p->run, "clean_session") == 0;
    p->flight.inflight = (uint32_t)bench_param_int(p->run, "inflight");
}

void mqtt_publisher_delete(mqtt_publisher_t *p) {
    mqtt_link_close(&p->link);
    mqtt_tcp_watch_delete(&p->watch);
    mqtt_flight_delete(&p->flight);
    load_pipeline_delete(&p->load);
    free(p->message);
    free(p);
}

esp_err_t mqtt_publisher_bench(const bench_run_t *run, bench_samples_t *samples,
                               void (*set_up)(mqtt_publisher_t *publisher)) {
    mqtt_publisher_t *p = mqtt_publisher_create(run, samples);
    if (p == NULL) {
        return ESP_ERR_NO_MEM;
    }
    set_up(p);
    esp_err_t err = mqtt_publisher_run(p);
    mqtt_publisher_delete(p);
    return err;
}
