/* SPDX-License-Identifier: Apache-2.0 */
/* Partitions and the identity of the running image, read from a flash file as the board hands it over. */
#include "flash_fixture.h"

#include "esp_app_desc.h"
#include "esp_image_format.h"
#include "esp_ota_ops.h"
#include "nvs_flash.h"

static uint8_t *s_flash;
static uint8_t s_digest[32];

static const esp_partition_t *by_label(const char *label) {
    return esp_partition_find_first(ESP_PARTITION_TYPE_ANY, ESP_PARTITION_SUBTYPE_ANY, label);
}

/* The table in flash is what is found, by type, subtype and label. */
static void test_find(void) {
    const esp_partition_t *slot = by_label("ota_1");
    CHECK(slot != NULL && slot->address == OTA_1 && slot->size == SLOT_BYTES);
    CHECK(slot == esp_partition_find_first(ESP_PARTITION_TYPE_APP, ESP_PARTITION_SUBTYPE_APP_OTA_1, NULL));
    CHECK(by_label("missing") == NULL);
    int apps = 0;
    esp_partition_iterator_t iterator =
        esp_partition_find(ESP_PARTITION_TYPE_APP, ESP_PARTITION_SUBTYPE_ANY, NULL);
    for (; iterator != NULL; iterator = esp_partition_next(iterator)) {
        apps++;
    }
    CHECK_EQUAL(apps, 2);
}

/* The running partition is the one at the offset the board booted, and its SHA-256 the image's own. */
static void test_running_image_digest(void) {
    uint8_t digest[32] = {0};
    const esp_partition_t *running = esp_ota_get_running_partition();
    CHECK(running != NULL && running->address == OTA_1);
    CHECK_EQUAL(esp_partition_get_sha256(running, digest), ESP_OK);
    CHECK(memcmp(digest, s_digest, sizeof digest) == 0);
}

/* A flipped bit, no image, and an image without digest are refused. */
static void test_damaged_image(void) {
    uint8_t digest[32];
    const esp_partition_t *running = esp_ota_get_running_partition();
    s_flash[OTA_1 + 400] ^= 1;
    CHECK_EQUAL(esp_partition_get_sha256(running, digest), ESP_ERR_IMAGE_INVALID);
    s_flash[OTA_1 + 400] ^= 1;
    s_flash[OTA_1 + 23] = 0;
    CHECK_EQUAL(esp_partition_get_sha256(running, digest), ESP_ERR_IMAGE_INVALID);
    s_flash[OTA_1 + 23] = 1;
    CHECK_EQUAL(esp_partition_get_sha256(by_label("ota_0"), digest), ESP_ERR_IMAGE_INVALID);
    CHECK_EQUAL(esp_partition_get_sha256(running, digest), ESP_OK);
}

/* A segment that claims to be longer than the partition is refused before anything is read past it. */
static void test_oversized_segment(void) {
    uint8_t digest[32];
    uint8_t *length = s_flash + OTA_1 + sizeof(esp_image_header_t) + 4;
    uint8_t saved[4];
    memcpy(saved, length, sizeof saved);
    memset(length, 0xff, sizeof saved);
    CHECK_EQUAL(esp_partition_get_sha256(esp_ota_get_running_partition(), digest), ESP_ERR_IMAGE_INVALID);
    memcpy(length, saved, sizeof saved);
}

/* The description comes from the image. */
static void test_app_description(void) {
    const esp_app_desc_t *description = esp_app_get_description();
    CHECK(strcmp(description->version, "1.2.3") == 0);
    CHECK(strcmp(description->project_name, "crafted") == 0);
}

/* Writing clears bits only, erasing sets a sector, and neither leaves the partition or a read-only one. */
static void test_nor_rules(void) {
    const esp_partition_t *nvs = by_label("nvs");
    const uint8_t first = 0xf0;
    const uint8_t second = 0x3c;
    uint8_t cell = 0;
    CHECK_EQUAL(esp_partition_write(nvs, 5, &first, 1), ESP_OK);
    CHECK_EQUAL(esp_partition_write(nvs, 5, &second, 1), ESP_OK);
    CHECK_EQUAL(esp_partition_read(nvs, 5, &cell, 1), ESP_OK);
    CHECK_EQUAL(cell, 0x30);
    CHECK_EQUAL(esp_partition_erase_range(nvs, 0, 100), ESP_ERR_INVALID_SIZE);
    CHECK_EQUAL(esp_partition_erase_range(nvs, 0, 4096), ESP_OK);
    CHECK_EQUAL(s_flash[0x9000 + 5], 0xff);
    CHECK_EQUAL(esp_partition_write(nvs, nvs->size, &first, 1), ESP_ERR_INVALID_SIZE);
    CHECK_EQUAL(esp_partition_read(nvs, nvs->size + 1, &cell, 1), ESP_ERR_INVALID_ARG);
    CHECK_EQUAL(esp_partition_write(by_label("phy_init"), 0, &first, 1), ESP_ERR_NOT_ALLOWED);
    CHECK_EQUAL(nvs_flash_init(), ESP_OK);
    CHECK_EQUAL(nvs_flash_erase(), ESP_OK);
}

/* A mapping shows the flash, also at an offset that is not a page's. */
static void test_mmap(void) {
    const void *memory = NULL;
    esp_partition_mmap_handle_t handle = 0;
    CHECK_EQUAL(esp_partition_mmap(by_label("ota_1"), 33, 64, ESP_PARTITION_MMAP_DATA, &memory, &handle),
                ESP_OK);
    CHECK(memcmp(memory, s_flash + OTA_1 + 33, 64) == 0);
    esp_partition_munmap(handle);
}

int main(void) {
    s_flash = flash_create("200000");
    (void)image_create(s_flash + OTA_1, "1.2.3", s_digest);
    test_find();
    test_running_image_digest();
    test_damaged_image();
    test_oversized_segment();
    test_app_description();
    test_nor_rules();
    test_mmap();
    return 0;
}
