/* SPDX-License-Identifier: Apache-2.0 */
/* Non-volatile storage: values come back, also after a restart; a full partition says so; wear is spread. */
#include "../flash/nor.h"
#include "../nvs/page.h"
#include "idf_check.h"
#include "nvs_flash.h"

static nvs_handle_t s_handle;

static const esp_partition_t *partition(void) {
    return esp_partition_find_first(ESP_PARTITION_TYPE_DATA, ESP_PARTITION_SUBTYPE_DATA_NVS, NULL);
}

static void restart(void) {
    CHECK_EQUAL(nvs_flash_deinit(), ESP_OK);
    CHECK_EQUAL(nvs_flash_init(), ESP_OK);
    CHECK_EQUAL(nvs_open("app", NVS_READWRITE, &s_handle), ESP_OK);
}

static void start_empty(void) {
    CHECK_EQUAL(nvs_flash_erase(), ESP_OK);
    CHECK_EQUAL(nvs_flash_init(), ESP_OK);
    CHECK_EQUAL(nvs_open("app", NVS_READWRITE, &s_handle), ESP_OK);
}

/* Nothing opens before the partition is initialised, and no namespace to be read that nobody has written. */
static void test_before_init(void) {
    nvs_handle_t handle;
    CHECK_EQUAL(nvs_open("app", NVS_READWRITE, &handle), ESP_ERR_NVS_NOT_INITIALIZED);
    CHECK_EQUAL(nvs_flash_deinit(), ESP_ERR_NVS_NOT_INITIALIZED);
    CHECK_EQUAL(nvs_flash_init(), ESP_OK);
    CHECK_EQUAL(nvs_open_from_partition("other", "app", NVS_READWRITE, &handle), ESP_ERR_NVS_PART_NOT_FOUND);
    CHECK_EQUAL(nvs_open("app", NVS_READONLY, &handle), ESP_ERR_NVS_NOT_FOUND);
    CHECK_EQUAL(nvs_open("a-name-too-long-", NVS_READWRITE, &handle), ESP_ERR_NVS_KEY_TOO_LONG);
    CHECK_EQUAL(nvs_set_u8(99, "key", 1), ESP_ERR_NVS_INVALID_HANDLE);
}

/* Each type keeps its value over a restart; another type of the key is not found, and takes its place. */
static void test_types(void) {
    start_empty();
    CHECK_EQUAL(nvs_set_i8(s_handle, "i8", -8), ESP_OK);
    CHECK_EQUAL(nvs_set_u16(s_handle, "u16", 65535), ESP_OK);
    CHECK_EQUAL(nvs_set_i64(s_handle, "i64", INT64_MIN), ESP_OK);
    CHECK_EQUAL(nvs_set_str(s_handle, "text", "Grüße"), ESP_OK);
    restart();
    int8_t i8 = 0;
    uint16_t u16 = 0;
    int64_t i64 = 0;
    uint32_t u32 = 7;
    char text[16];
    size_t length = sizeof text;
    CHECK(nvs_get_i8(s_handle, "i8", &i8) == ESP_OK && i8 == -8);
    CHECK(nvs_get_u16(s_handle, "u16", &u16) == ESP_OK && u16 == 65535);
    CHECK(nvs_get_i64(s_handle, "i64", &i64) == ESP_OK && i64 == INT64_MIN);
    CHECK(nvs_get_str(s_handle, "text", text, &length) == ESP_OK && strcmp(text, "Grüße") == 0);
    CHECK_EQUAL(length, sizeof "Grüße");
    CHECK(nvs_get_u32(s_handle, "u16", &u32) == ESP_ERR_NVS_NOT_FOUND && u32 == 7);
    CHECK_EQUAL(nvs_set_u32(s_handle, "u16", 70000), ESP_OK);
    CHECK_EQUAL(nvs_get_u16(s_handle, "u16", &u16), ESP_ERR_NVS_NOT_FOUND);
    nvs_type_t type;
    CHECK(nvs_find_key(s_handle, "u16", &type) == ESP_OK && type == NVS_TYPE_U32);
    CHECK_EQUAL(nvs_set_u8(s_handle, "sixteen-letters!", 1), ESP_ERR_NVS_KEY_TOO_LONG);
}

/* A buffer that is too small is told the length it needs, and left alone. */
static void test_lengths(void) {
    char text[4] = "old";
    size_t length = sizeof text;
    CHECK_EQUAL(nvs_get_str(s_handle, "text", text, &length), ESP_ERR_NVS_INVALID_LENGTH);
    CHECK(length == sizeof "Grüße" && strcmp(text, "old") == 0);
    length = 0;
    CHECK_EQUAL(nvs_get_str(s_handle, "text", NULL, &length), ESP_OK);
    CHECK_EQUAL(length, sizeof "Grüße");
}

/* A namespace is its own; one that is open to be read cannot be written. */
static void test_namespaces(void) {
    nvs_handle_t other;
    uint8_t value = 0;
    CHECK_EQUAL(nvs_open("other", NVS_READWRITE, &other), ESP_OK);
    CHECK_EQUAL(nvs_set_u8(s_handle, "same", 1), ESP_OK);
    CHECK_EQUAL(nvs_set_u8(other, "same", 2), ESP_OK);
    CHECK(nvs_get_u8(s_handle, "same", &value) == ESP_OK && value == 1);
    CHECK_EQUAL(nvs_erase_all(other), ESP_OK);
    CHECK_EQUAL(nvs_get_u8(other, "same", &value), ESP_ERR_NVS_NOT_FOUND);
    CHECK(nvs_get_u8(s_handle, "same", &value) == ESP_OK && value == 1);
    nvs_close(other);
    CHECK_EQUAL(nvs_commit(other), ESP_ERR_NVS_INVALID_HANDLE);
    CHECK_EQUAL(nvs_open("app", NVS_READONLY, &other), ESP_OK);
    CHECK_EQUAL(nvs_set_u8(other, "same", 3), ESP_ERR_NVS_READ_ONLY);
    CHECK_EQUAL(nvs_erase_key(other, "same"), ESP_ERR_NVS_READ_ONLY);
    CHECK_EQUAL(nvs_erase_key(s_handle, "absent"), ESP_ERR_NVS_NOT_FOUND);
}

/* A blob may be longer than a page; a new version replaces it whole. */
static void test_blobs(void) {
    static uint8_t blob[5000];
    static uint8_t back[5000];
    start_empty();
    for (int version = 1; version <= 3; version++) {
        memset(blob, version, sizeof blob);
        CHECK_EQUAL(nvs_set_blob(s_handle, "blob", blob, sizeof blob - version), ESP_OK);
        restart();
        size_t length = sizeof back;
        CHECK_EQUAL(nvs_get_blob(s_handle, "blob", back, &length), ESP_OK);
        CHECK_EQUAL(length, sizeof blob - version);
        CHECK(memcmp(back, blob, length) == 0);
    }
    size_t before;
    size_t after;
    CHECK_EQUAL(nvs_get_used_entry_count(s_handle, &before), ESP_OK);
    CHECK_EQUAL(nvs_set_str(s_handle, "blob", "text"), ESP_OK);
    CHECK_EQUAL(nvs_get_used_entry_count(s_handle, &after), ESP_OK);
    CHECK(before > 150 && after == 2);
}

/* An iterator meets each entry of the type once, with its namespace. */
static void test_iterator(void) {
    start_empty();
    nvs_set_u8(s_handle, "one", 1);
    nvs_set_str(s_handle, "two", "2");
    nvs_set_blob(s_handle, "three", "333", 3);
    nvs_iterator_t iterator = NULL;
    char seen[64] = "";
    esp_err_t result = nvs_entry_find("nvs", NULL, NVS_TYPE_ANY, &iterator);
    for (; result == ESP_OK; result = nvs_entry_next(&iterator)) {
        nvs_entry_info_t info;
        CHECK_EQUAL(nvs_entry_info(iterator, &info), ESP_OK);
        CHECK(strcmp(info.namespace_name, "app") == 0);
        snprintf(seen + strlen(seen), sizeof seen - strlen(seen), "%s:%02x ", info.key, info.type);
    }
    CHECK(result == ESP_ERR_NVS_NOT_FOUND && iterator == NULL);
    CHECK(strcmp(seen, "one:01 two:21 three:42 ") == 0);
    CHECK_EQUAL(nvs_entry_find("nvs", "app", NVS_TYPE_BLOB, &iterator), ESP_OK);
    CHECK_EQUAL(nvs_entry_next(&iterator), ESP_ERR_NVS_NOT_FOUND);
    CHECK_EQUAL(nvs_entry_find("nvs", "nobody", NVS_TYPE_ANY, &iterator), ESP_ERR_NVS_NOT_FOUND);
}

/* As many values fit as pages but one have entries; then there is no space, and what is stored stays. */
static void test_full(void) {
    start_empty();
    char key[NVS_KEY_NAME_MAX_SIZE];
    uint32_t stored = 0;
    esp_err_t result = ESP_OK;
    while (result == ESP_OK) {
        snprintf(key, sizeof key, "key%u", (unsigned)stored);
        result = nvs_set_u32(s_handle, key, stored);
        stored += result == ESP_OK;
    }
    CHECK_EQUAL(result, ESP_ERR_NVS_NOT_ENOUGH_SPACE);
    CHECK_EQUAL(stored, (partition()->size / 4096 - 1) * 126 - 1); /* the namespace has one */
    nvs_stats_t stats;
    CHECK_EQUAL(nvs_get_stats(NULL, &stats), ESP_OK);
    CHECK(stats.used_entries == stored + 1 && stats.available_entries == 0 && stats.namespace_count == 1);
    CHECK_EQUAL(nvs_set_blob(s_handle, "blob", "x", 1), ESP_ERR_NVS_NOT_ENOUGH_SPACE);
    restart();
    for (uint32_t i = 0; i < stored; i++) {
        uint32_t value = UINT32_MAX;
        snprintf(key, sizeof key, "key%u", (unsigned)i);
        CHECK(nvs_get_u32(s_handle, key, &value) == ESP_OK && value == i);
    }
    CHECK_EQUAL(nvs_erase_key(s_handle, "key5"), ESP_OK);
    CHECK_EQUAL(nvs_set_u32(s_handle, "new", 5), ESP_OK);
}

static uint32_t erases(uint32_t page) {
    return nor_erase_count(partition()->address + page * 4096);
}

/* A value that changes again and again goes round the pages, but for the one that holds the namespace, which
 * is never the one to gain most from; a value that stays the same is not written. */
static void test_wear(void) {
    start_empty();
    uint32_t pages = partition()->size / 4096;
    uint32_t before[16];
    for (uint32_t page = 0; page < pages; page++) {
        before[page] = erases(page);
    }
    for (uint32_t i = 0; i < 2 * pages * 126; i++) {
        CHECK_EQUAL(nvs_set_u32(s_handle, "count", i), ESP_OK);
    }
    uint32_t total = 0;
    for (uint32_t page = 0; page < pages; page++) {
        uint32_t here = erases(page) - before[page];
        CHECK(page == 0 ? here == 0 : here >= 1 && here <= 3);
        total += here;
    }
    nvs_stats_t stats;
    CHECK_EQUAL(nvs_set_str(s_handle, "same", "same"), ESP_OK);
    nvs_get_stats(NULL, &stats);
    for (int i = 0; i < 1000; i++) {
        CHECK_EQUAL(nvs_set_str(s_handle, "same", "same"), ESP_OK);
    }
    for (uint32_t page = 0; page < pages; page++) {
        total -= erases(page) - before[page];
    }
    CHECK_EQUAL(total, 0);
}

/* A write takes as long as NOR flash does: a value of one entry is programmed in more than 130 µs. */
static void test_takes_time(void) {
    int64_t start_us = vboard_uptime_us();
    for (uint32_t i = 0; i < 20; i++) {
        CHECK_EQUAL(nvs_set_u32(s_handle, "timed", i), ESP_OK);
    }
    CHECK(vboard_uptime_us() - start_us > 20 * 130);
}

/* A reset between the new version and the end of the old one leaves both; after it the newer one counts. */
static void test_reset_between_versions(void) {
    start_empty();
    CHECK_EQUAL(nvs_set_u32(s_handle, "value", 1), ESP_OK);
    uint32_t bitmap;
    CHECK_EQUAL(esp_partition_read(partition(), 32, &bitmap, sizeof bitmap), ESP_OK);
    CHECK_EQUAL(nvs_set_u32(s_handle, "value", 2), ESP_OK);
    CHECK_EQUAL(nvs_flash_deinit(), ESP_OK);
    static uint8_t page[4096];
    CHECK_EQUAL(esp_partition_read(partition(), 0, page, sizeof page), ESP_OK);
    bitmap &= ~(1U << 4); /* as it was, and the third entry written as well */
    memcpy(page + 32, &bitmap, sizeof bitmap);
    memset(page + 64 + 3 * 32, 0x5a, 7); /* and a fourth one begun */
    CHECK_EQUAL(esp_partition_erase_range(partition(), 0, sizeof page), ESP_OK);
    CHECK_EQUAL(esp_partition_write(partition(), 0, page, sizeof page), ESP_OK);
    CHECK_EQUAL(nvs_flash_init(), ESP_OK);
    CHECK_EQUAL(nvs_open("app", NVS_READWRITE, &s_handle), ESP_OK);
    uint32_t value = 0;
    CHECK(nvs_get_u32(s_handle, "value", &value) == ESP_OK && value == 2);
    CHECK_EQUAL(nvs_set_u32(s_handle, "value", 3), ESP_OK);
    restart();
    CHECK(nvs_get_u32(s_handle, "value", &value) == ESP_OK && value == 3);
}

/* Pages that are all in use and none blank, as of another product's partition, are refused as ESP-IDF
 * refuses. */
static void test_no_free_pages(void) {
    start_empty();
    CHECK_EQUAL(nvs_flash_deinit(), ESP_OK);
    static uint8_t page[4096];
    CHECK_EQUAL(esp_partition_read(partition(), 0, page, sizeof page), ESP_OK);
    for (uint32_t offset = 0; offset < partition()->size; offset += sizeof page) {
        CHECK_EQUAL(esp_partition_erase_range(partition(), offset, sizeof page), ESP_OK);
        CHECK_EQUAL(esp_partition_write(partition(), offset, page, sizeof page), ESP_OK);
    }
    CHECK_EQUAL(nvs_flash_init(), ESP_ERR_NVS_NO_FREE_PAGES);
    CHECK_EQUAL(nvs_flash_erase(), ESP_OK);
    CHECK_EQUAL(nvs_flash_init(), ESP_OK);
}

/* The format is ESP-IDF's: a page as its tools write it, byte for byte. */
static void test_format(void) {
    start_empty();
    CHECK_EQUAL(nvs_set_u8(s_handle, "key", 0x42), ESP_OK);
    uint8_t page[64 + 2 * 32];
    CHECK_EQUAL(esp_partition_read(partition(), 0, page, sizeof page), ESP_OK);
    static const uint8_t header[] = {0xfe, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0xfe};
    CHECK(memcmp(page, header, sizeof header) == 0);
    CHECK_EQUAL(page[32], 0xfa); /* two entries written */
    static const uint8_t entry[] = {1, 1, 1, 0xff};
    CHECK(memcmp(page + 64 + 32, entry, sizeof entry) == 0);
    CHECK(strcmp((char *)page + 64 + 32 + 8, "key") == 0);
    CHECK_EQUAL(page[64 + 32 + 24], 0x42);
}

void app_main(void) {
    test_before_init();
    test_types();
    test_lengths();
    test_namespaces();
    test_blobs();
    test_iterator();
    test_full();
    test_wear();
    test_takes_time();
    test_reset_between_versions();
    test_no_free_pages();
    test_format();
    exit(0);
}
