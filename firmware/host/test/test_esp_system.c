/* SPDX-License-Identifier: Apache-2.0 */
/* Identity, clock, heap figures, logging and calls on a chosen core. */
#include "esp_system.h"

#include "esp_chip_info.h"
#include "esp_cpu.h"
#include "esp_heap_caps.h"
#include "esp_ipc.h"
#include "esp_log.h"
#include "esp_mac.h"
#include "esp_random.h"
#include "esp_rom_crc.h"
#include "esp_task_wdt.h"
#include "esp_timer.h"
#include "idf_check.h"

static char s_logged[256];

static int catch_line(const char *format, va_list args) {
    return vsnprintf(s_logged, sizeof s_logged, format, args);
}

/* A log line is "level (milliseconds) tag: text"; a tag can be silenced. */
static void test_log_format(void) {
    vprintf_like_t before = esp_log_set_vprintf(catch_line);
    uint32_t milliseconds = 0;
    char text[16] = "";
    ESP_LOGW("tag", "value %d", 7);
    CHECK_EQUAL(sscanf(s_logged, "W (%u) tag: %15[^\n]", &milliseconds, text), 2);
    CHECK(strcmp(text, "value 7") == 0);
    CHECK(milliseconds <= (uint32_t)(esp_timer_get_time() / 1000));
    s_logged[0] = '\0';
    ESP_LOGD("tag", "above the level compiled in");
    esp_log_level_set("quiet", ESP_LOG_ERROR);
    ESP_LOGI("quiet", "silenced");
    CHECK(s_logged[0] == '\0');
    ESP_LOGE("quiet", "heard");
    CHECK(s_logged[0] == 'E');
    esp_log_set_vprintf(before);
}

/* The addresses of the interfaces follow from the base address. */
static void test_mac(void) {
    static const uint8_t base[6] = {0x24, 0x0a, 0xc4, 0x00, 0x00, 0x01};
    uint8_t mac[6];
    CHECK_EQUAL(esp_read_mac(mac, ESP_MAC_WIFI_STA), ESP_OK);
    CHECK(memcmp(mac, base, sizeof base) == 0);
    CHECK_EQUAL(esp_read_mac(mac, ESP_MAC_ETH), ESP_OK);
    CHECK_EQUAL(mac[5], base[5] + 3);
    CHECK_EQUAL(esp_read_mac(NULL, ESP_MAC_ETH), ESP_ERR_INVALID_ARG);
    CHECK_EQUAL(esp_read_mac(mac, ESP_MAC_IEEE802154), ESP_ERR_NOT_SUPPORTED);
}

/* A base address of the product's own gives the others, but for one that is set itself; the factory's stays.
 */
static void test_own_mac(void) {
    static const uint8_t base[6] = {0x02, 0, 0, 0, 0, 0x10};
    static const uint8_t wired[6] = {0x02, 0, 0, 0, 0, 0x99};
    static const uint8_t group[6] = {0x03, 0, 0, 0, 0, 0x10};
    uint8_t mac[6];
    CHECK_EQUAL(esp_iface_mac_addr_set(group, ESP_MAC_BASE), ESP_ERR_INVALID_ARG);
    CHECK_EQUAL(esp_iface_mac_addr_set(base, ESP_MAC_EFUSE_FACTORY), ESP_ERR_INVALID_ARG);
    CHECK_EQUAL(esp_base_mac_addr_set(base), ESP_OK);
    CHECK_EQUAL(esp_iface_mac_addr_set(wired, ESP_MAC_ETH), ESP_OK);
    CHECK(esp_read_mac(mac, ESP_MAC_WIFI_SOFTAP) == ESP_OK && mac[0] == 0x02 && mac[5] == 0x11);
    CHECK(esp_read_mac(mac, ESP_MAC_ETH) == ESP_OK && mac[5] == 0x99);
    CHECK(esp_efuse_mac_get_default(mac) == ESP_OK && mac[0] == 0x24 && mac[5] == 0x01);
}

/* CRC-32 is zlib's, also in pieces. */
static void test_crc(void) {
    const uint8_t *text = (const uint8_t *)"123456789";
    CHECK_EQUAL(esp_rom_crc32_le(0, text, 9), 0xcbf43926U);
    CHECK_EQUAL(esp_rom_crc32_le(esp_rom_crc32_le(0, text, 4), text + 4, 5), 0xcbf43926U);
}

/* The cycle counter runs at the CPU's clock, on the clock of esp_timer. */
static void test_cycle_counter(void) {
    int64_t start_us = esp_timer_get_time();
    esp_cpu_cycle_count_t start = esp_cpu_get_cycle_count();
    vTaskDelay(2);
    esp_cpu_cycle_count_t cycles = esp_cpu_get_cycle_count() - start;
    int64_t elapsed_us = esp_timer_get_time() - start_us;
    CHECK(cycles <= (elapsed_us + 1) * CONFIG_ESP_DEFAULT_CPU_FREQ_MHZ);
    CHECK(cycles >= 1000 * CONFIG_ESP_DEFAULT_CPU_FREQ_MHZ);
}

/* Free heap falls by what is allocated, and its minimum stays where it was lowest. */
static void test_heap_figures(void) {
    size_t before = heap_caps_get_free_size(MALLOC_CAP_DEFAULT);
    CHECK(before > 0 && before <= heap_caps_get_total_size(MALLOC_CAP_DEFAULT));
    TaskHandle_t task = NULL;
    CHECK_EQUAL(xTaskCreate((TaskFunction_t)vTaskSuspend, "asleep", 8192, NULL, 1, &task), pdPASS);
    size_t with_task = heap_caps_get_free_size(MALLOC_CAP_DEFAULT);
    CHECK(with_task + 8192 <= before);
    vTaskDelete(task);
    CHECK(heap_caps_get_free_size(MALLOC_CAP_DEFAULT) > with_task);
    CHECK(heap_caps_get_minimum_free_size(MALLOC_CAP_DEFAULT) <= with_task);
    CHECK(heap_caps_malloc(16, MALLOC_CAP_SPIRAM) == NULL);
}

static void read_core(void *argument) {
    *(int *)argument = xPortGetCoreID();
}

/* A blocking call on a core has run there when it returns. */
static void test_ipc(void) {
    for (int core = 0; core < portNUM_PROCESSORS; core++) {
        int seen = -1;
        CHECK_EQUAL(esp_ipc_call_blocking((uint32_t)core, read_core, &seen), ESP_OK);
        CHECK_EQUAL(seen, core);
    }
    CHECK_EQUAL(esp_ipc_call_blocking(portNUM_PROCESSORS, read_core, NULL), ESP_ERR_INVALID_ARG);
}

static SemaphoreHandle_t s_named;
static const char *s_wanted_name;

static int wait_for_name(const char *format, va_list args) {
    char line[128];
    int length = vsnprintf(line, sizeof line, format, args);
    if (strstr(line, s_wanted_name) != NULL) {
        xSemaphoreGive(s_named);
    }
    return length;
}

/* A subscribed task that does not reset in time is named on the console. */
static void test_task_watchdog(void) {
    const esp_task_wdt_config_t config = {.timeout_ms = 20};
    const esp_task_wdt_config_t too_many = {.timeout_ms = 20, .idle_core_mask = 1 << portNUM_PROCESSORS};
    CHECK_EQUAL(esp_task_wdt_init(&config), ESP_ERR_INVALID_STATE); /* as it runs from the start */
    CHECK_EQUAL(esp_task_wdt_deinit(), ESP_OK);
    CHECK_EQUAL(esp_task_wdt_reset(), ESP_ERR_INVALID_STATE);
    CHECK_EQUAL(esp_task_wdt_reconfigure(&config), ESP_ERR_INVALID_STATE);
    CHECK_EQUAL(esp_task_wdt_init(&too_many), ESP_ERR_INVALID_ARG);
    CHECK_EQUAL(esp_task_wdt_init(&config), ESP_OK);
    CHECK_EQUAL(esp_task_wdt_add(NULL), ESP_OK);
    CHECK_EQUAL(esp_task_wdt_add(NULL), ESP_ERR_INVALID_ARG);
    CHECK_EQUAL(esp_task_wdt_reset(), ESP_OK);
    s_named = xSemaphoreCreateBinary();
    s_wanted_name = "task_wdt:  - main";
    vprintf_like_t before = esp_log_set_vprintf(wait_for_name);
    CHECK(xSemaphoreTake(s_named, portMAX_DELAY));
    CHECK_EQUAL(esp_task_wdt_deinit(), ESP_ERR_INVALID_STATE); /* this task is watched */
    CHECK_EQUAL(esp_task_wdt_delete(NULL), ESP_OK);
    CHECK_EQUAL(esp_task_wdt_deinit(), ESP_OK);
    esp_log_set_vprintf(before);
}

/* A user of the watchdog has a term of its own, and is named by its own name. */
static void test_task_watchdog_user(void) {
    const esp_task_wdt_config_t config = {.timeout_ms = 20};
    esp_task_wdt_user_handle_t user = NULL;
    CHECK_EQUAL(esp_task_wdt_add_user("pump", &user), ESP_ERR_INVALID_STATE);
    CHECK_EQUAL(esp_task_wdt_init(&config), ESP_OK);
    CHECK_EQUAL(esp_task_wdt_add_user(NULL, &user), ESP_ERR_INVALID_ARG);
    s_wanted_name = "task_wdt:  - pump";
    vprintf_like_t before = esp_log_set_vprintf(wait_for_name);
    CHECK_EQUAL(esp_task_wdt_add_user("pump", &user), ESP_OK);
    CHECK_EQUAL(esp_task_wdt_reset_user(user), ESP_OK);
    CHECK_EQUAL(esp_task_wdt_status(NULL), ESP_ERR_NOT_FOUND); /* the task itself is not watched */
    CHECK(xSemaphoreTake(s_named, portMAX_DELAY));
    CHECK_EQUAL(esp_task_wdt_delete_user(user), ESP_OK);
    CHECK_EQUAL(esp_task_wdt_reset_user(user), ESP_ERR_NOT_FOUND);
    CHECK_EQUAL(esp_task_wdt_deinit(), ESP_OK);
    esp_log_set_vprintf(before);
}

/* Errors have their names. */
static void test_error_names(void) {
    char text[32];
    CHECK(strcmp(esp_err_to_name(ESP_ERR_TIMEOUT), "ESP_ERR_TIMEOUT") == 0);
    CHECK(strcmp(esp_err_to_name(0x7777), "UNKNOWN ERROR") == 0);
    CHECK(strcmp(esp_err_to_name_r(0x7777, text, sizeof text), "Unknown error 0x7777(30583)") == 0);
}

void app_main(void) {
    esp_chip_info_t chip;
    esp_chip_info(&chip);
    CHECK_EQUAL(chip.cores, CONFIG_SOC_CPU_CORES_NUM);
    CHECK_EQUAL((int)chip.model, CONFIG_IDF_FIRMWARE_CHIP_ID == 0 ? CHIP_ESP32 : CONFIG_IDF_FIRMWARE_CHIP_ID);
    CHECK_EQUAL(esp_reset_reason(), ESP_RST_POWERON);
    CHECK(esp_random() != esp_random() || esp_random() != esp_random());
    test_log_format();
    test_mac();
    test_own_mac();
    test_crc();
    test_cycle_counter();
    test_heap_figures();
    test_ipc();
    test_task_watchdog();
    test_task_watchdog_user();
    test_error_names();
    exit(0);
}
