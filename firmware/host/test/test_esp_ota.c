/* SPDX-License-Identifier: Apache-2.0 */
/* App slots: what boots next is what otadata says, in the format the boot loader reads. */
#include "flash_fixture.h"

#include "esp_ota_ops.h"

static uint8_t *s_flash;

static const esp_ota_select_entry_t *entry(int sector) {
    return (const esp_ota_select_entry_t *)(const void *)(s_flash + 0xd000 + sector * 4096);
}

static const esp_partition_t *slot(int index) {
    return esp_partition_find_first(ESP_PARTITION_TYPE_APP, ESP_PARTITION_SUBTYPE_OTA(index), NULL);
}

/* With blank otadata the first slot boots; the slot after the running one is updated next. */
static void test_blank(void) {
    CHECK_EQUAL(esp_ota_get_app_partition_count(), 2);
    CHECK(esp_ota_get_boot_partition() == slot(0));
    CHECK(esp_ota_get_running_partition() == slot(0));
    CHECK(esp_ota_get_next_update_partition(NULL) == slot(1));
    CHECK(esp_ota_get_next_update_partition(slot(1)) == slot(0));
}

/* An image written piece by piece to the other slot is accepted when whole, refused when cut. */
static void test_update(void) {
    uint8_t image[1024];
    uint8_t digest[32];
    size_t bytes = image_create(image, "2.0.0", digest);
    esp_ota_handle_t handle = 0;
    CHECK_EQUAL(esp_ota_begin(slot(0), OTA_SIZE_UNKNOWN, &handle), ESP_ERR_OTA_PARTITION_CONFLICT);
    CHECK_EQUAL(esp_ota_begin(slot(1), OTA_SIZE_UNKNOWN, &handle), ESP_OK);
    CHECK_EQUAL(esp_ota_write(handle, image, bytes - 40), ESP_OK);
    CHECK_EQUAL(esp_ota_end(handle), ESP_ERR_OTA_VALIDATE_FAILED);
    CHECK_EQUAL(esp_ota_set_boot_partition(slot(1)), ESP_ERR_OTA_VALIDATE_FAILED);
    CHECK_EQUAL(esp_ota_begin(slot(1), OTA_SIZE_UNKNOWN, &handle), ESP_OK);
    CHECK_EQUAL(esp_ota_write(handle, image, 100), ESP_OK);
    CHECK_EQUAL(esp_ota_write(handle, image + 100, bytes - 100), ESP_OK);
    CHECK_EQUAL(esp_ota_end(handle), ESP_OK);
    CHECK_EQUAL(esp_ota_end(handle), ESP_ERR_NOT_FOUND);
}

/* Choosing a slot writes the next sequence number that stands for it into the sector that does not rule. */
static void test_set_boot_partition(void) {
    CHECK_EQUAL(esp_ota_set_boot_partition(slot(0)), ESP_OK);
    CHECK_EQUAL(entry(0)->ota_seq, 1);
    CHECK_EQUAL(entry(0)->crc, 0x4743989a); /* as in every otadata of sequence number 1 that esptool writes */
    CHECK_EQUAL(esp_ota_set_boot_partition(slot(1)), ESP_OK);
    CHECK_EQUAL(entry(1)->ota_seq, 2);
    CHECK(esp_ota_get_boot_partition() == slot(1));
    CHECK_EQUAL(esp_ota_set_boot_partition(slot(1)), ESP_OK);
    CHECK_EQUAL(entry(0)->ota_seq, 1);
    CHECK_EQUAL(esp_ota_set_boot_partition(slot(0)), ESP_OK);
    CHECK_EQUAL(entry(0)->ota_seq, 3);
    CHECK(esp_ota_get_boot_partition() == slot(0));
}

/* A damaged entry does not rule. */
static void test_damaged_entry(void) {
    s_flash[0xd000] ^= 4;
    CHECK(esp_ota_get_boot_partition() == slot(1));
    s_flash[0xd000] ^= 4;
}

/* The running app can confirm itself. */
static void test_mark_valid(void) {
    esp_ota_img_states_t state = ESP_OTA_IMG_NEW;
    CHECK_EQUAL(esp_ota_mark_app_valid_cancel_rollback(), ESP_OK);
    CHECK_EQUAL(esp_ota_get_state_partition(slot(0), &state), ESP_OK);
    CHECK_EQUAL(state, ESP_OTA_IMG_VALID);
    CHECK(esp_ota_get_boot_partition() == slot(0));
}

int main(void) {
    uint8_t digest[32];
    s_flash = flash_create("10000");
    (void)image_create(s_flash + OTA_0, "1.0.0", digest);
    test_blank();
    test_update();
    test_set_boot_partition();
    test_damaged_entry();
    test_mark_valid();
    return 0;
}
