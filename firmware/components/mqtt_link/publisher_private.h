/* SPDX-License-Identifier: Apache-2.0 */
/* What publisher.c sets going. Each context is the publisher. */
#pragma once

#include "mqtt_link/publisher.h"

/* Publish the oldest row of the ring; false where there is none. In the publisher's task. */
bool mqtt_publisher_publish_next(void *context);

/* The ring had no room for a row. In the producer's task. */
void mqtt_publisher_overrun(void *context, size_t row);

/* An event of the connection. In the mqtt task. */
void mqtt_publisher_on_event(void *context, const esp_mqtt_event_t *event);

/* Measure a burst, for load_bursts_run(). */
esp_err_t mqtt_publisher_measure(void *context, size_t rows, size_t warmup_rows);
