/* SPDX-License-Identifier: Apache-2.0 */
/* Traffic: messages to the broker, sectors of the flash, blocks of PSRAM. */
#include <string.h>

#include "esp_heap_caps.h"
#include "esp_partition.h"
#include "esp_timer.h"
#include "load_private.h"

enum {
    MESSAGE_BYTES = 1024,
    MESSAGE_PERIOD_MS = 10,
    MESSAGES_PER_PERIOD = 2,

    SECTOR_BYTES = 4096,
    SECTOR_PERIOD_MS = 100, /* a sector takes some 100,000 erasures: ten a second, in turn */

    PSRAM_BYTES = 256 * 1024,
    PSRAM_ROUNDS = 8,
};

static const esp_partition_t *scratch(void) {
    return esp_partition_find_first(ESP_PARTITION_TYPE_DATA, ESP_PARTITION_SUBTYPE_ANY, "scratch");
}

static esp_err_t allocate(rtos_load_t *load, size_t bytes, uint32_t caps) {
    load->memory = heap_caps_malloc(bytes, caps);
    if (load->memory == NULL) {
        return ESP_ERR_NO_MEM;
    }
    memset(load->memory, 'x', bytes);
    return ESP_OK;
}

/* ---- network ---- */

esp_err_t rtos_load_open_network(rtos_load_t *load) {
    load->link =
        (mqtt_link_t){.run = load->run, .samples = load->samples, .transport = MQTT_LINK_TCP, .nodelay = 1};
    esp_err_t err = allocate(load, MESSAGE_BYTES, MALLOC_CAP_DEFAULT);
    return err != ESP_OK ? err : mqtt_link_open(&load->link);
}

void rtos_load_publish(void *context) {
    rtos_load_t *load = context;
    char topic[MQTT_LINK_TOPIC_SIZE];
    TickType_t tick = xTaskGetTickCount();
    mqtt_link_topic(topic, "load");
    while (!rtos_load_is_over(load)) {
        for (int i = 0; i < MESSAGES_PER_PERIOD; i++) {
            int id = esp_mqtt_client_publish(load->link.client, topic, (const char *)load->memory,
                                             MESSAGE_BYTES, 0, 0);
            load->done_count += id >= 0;
            load->failed_count += id < 0;
        }
        vTaskDelayUntil(&tick, pdMS_TO_TICKS(MESSAGE_PERIOD_MS));
    }
}

/* ---- flash ---- */

esp_err_t rtos_load_open_flash(rtos_load_t *load) {
    if (scratch() == NULL) {
        return bench_fail(
            load->samples, BENCH_OWNER_CONFIGURATION, ESP_ERR_NOT_FOUND,
            "load=flash writes to a partition 'scratch', which the board's partition table has not; "
            "flash all of this build, not the application alone");
    }
    return allocate(load, SECTOR_BYTES, MALLOC_CAP_INTERNAL | MALLOC_CAP_8BIT);
}

static bool write_sector(const rtos_load_t *load, const esp_partition_t *partition, uint32_t index) {
    const size_t offset = (size_t)index * SECTOR_BYTES % partition->size;
    return esp_partition_erase_range(partition, offset, SECTOR_BYTES) == ESP_OK &&
           esp_partition_write(partition, offset, load->memory, SECTOR_BYTES) == ESP_OK;
}

void rtos_load_write_flash(void *context) {
    rtos_load_t *load = context;
    const esp_partition_t *partition = scratch();
    /* Not always the same sectors first: a run of a few would wear those out. */
    uint32_t index = (uint32_t)esp_timer_get_time() / 1000;
    TickType_t tick = xTaskGetTickCount();
    while (!rtos_load_is_over(load)) {
        bool written = write_sector(load, partition, index++);
        load->done_count += written;
        load->failed_count += !written;
        if (xTaskDelayUntil(&tick, pdMS_TO_TICKS(SECTOR_PERIOD_MS)) == pdFALSE) {
            vTaskDelay(1); /* a slow flash: the idle task has its turn all the same */
            tick = xTaskGetTickCount();
        }
    }
}

/* ---- PSRAM ---- */

esp_err_t rtos_load_open_psram(rtos_load_t *load) {
    esp_err_t err = allocate(load, PSRAM_BYTES, MALLOC_CAP_SPIRAM);
    return err == ESP_OK ? ESP_OK
                         : bench_fail(load->samples, BENCH_OWNER_CONFIGURATION, ESP_ERR_NOT_SUPPORTED,
                                      "load=psram: this board has no PSRAM, or its image does not use it");
}

/* One half to the other and back, which is more than any cache holds. */
void rtos_load_copy_psram(void *context) {
    rtos_load_t *load = context;
    uint8_t *low = load->memory, *high = load->memory + PSRAM_BYTES / 2;
    while (!rtos_load_is_over(load)) {
        for (int i = 0; i < PSRAM_ROUNDS && !rtos_load_is_over(load); i++) {
            memcpy(i % 2 == 0 ? high : low, i % 2 == 0 ? low : high, PSRAM_BYTES / 2);
            load->done_count += PSRAM_BYTES / 2 / 1024;
        }
        vTaskDelay(pdMS_TO_TICKS(10));
    }
}
