/* SPDX-License-Identifier: Apache-2.0 */
/* mqtt_link/publisher.c: a message that does not fit into memory is said to be so, before anything is
 * connected. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"
#include "mqtt_link/publisher.h"

enum { MESSAGE_BYTES = 1000006 };

static char s_sentence[256];
static bench_owner_t s_owner;

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size) {
    return size == MESSAGE_BYTES ? NULL : __real_malloc(size);
}

int64_t __wrap_bench_param_int(const bench_run_t *run, const char *key);
int64_t __wrap_bench_param_int(const bench_run_t *run, const char *key) {
    (void)run;
    return strcmp(key, "interval_us") == 0 || strcmp(key, "count") == 0 ? 1000 : 1;
}

size_t __wrap_bench_samples_capacity(const bench_samples_t *samples);
size_t __wrap_bench_samples_capacity(const bench_samples_t *samples) {
    (void)samples;
    return 100;
}

esp_err_t __wrap_bench_fail(bench_samples_t *samples, bench_owner_t owner, esp_err_t status,
                            const char *format, ...);
esp_err_t __wrap_bench_fail(bench_samples_t *samples, bench_owner_t owner, esp_err_t status,
                            const char *format, ...) {
    va_list arguments;
    (void)samples;
    va_start(arguments, format);
    int length = vsnprintf(s_sentence, sizeof(s_sentence), format, arguments);
    va_end(arguments);
    EXPECT(length < (int)sizeof(s_sentence));
    s_owner = owner;
    return status;
}

static const mqtt_publisher_columns_t PLACES = {.copies = MQTT_NO_COLUMN, .order = MQTT_NO_COLUMN};

void app_main(void) {
    mqtt_publisher_t *publisher = mqtt_publisher_create(NULL, NULL);
    EXPECT(publisher != NULL);
    publisher->columns = &PLACES;
    publisher->leaf = "echo";
    publisher->message_bytes = MESSAGE_BYTES;
    EXPECT(mqtt_publisher_run(publisher) == ESP_ERR_NO_MEM);
    EXPECT(s_owner == BENCH_OWNER_FIRMWARE);
    EXPECT(strstr(s_sentence, "no memory for a message of 1000006 bytes") != NULL);
    EXPECT(strstr(s_sentence, "max_payload_bytes") != NULL);
    mqtt_publisher_delete(publisher);
    exit(0);
}
