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
    CHECK_EQUAL(entry(1)->ota_state, ESP_OTA_IMG_NEW);
    CHECK(esp_ota_get_boot_partition() == slot(1));
    CHECK_EQUAL(esp_ota_set_boot_partition(slot(1)), ESP_OK); /* which rules: once more */
    CHECK_EQUAL(entry(0)->ota_seq, 2);
    CHECK(esp_ota_get_boot_partition() == slot(1));
    CHECK_EQUAL(esp_ota_set_boot_partition(slot(0)), ESP_OK);
    CHECK_EQUAL(entry(1)->ota_seq, 3);
    CHECK(esp_ota_get_boot_partition() == slot(0));
}

/* A damaged entry does not rule. */
static void test_damaged_entry(void) {
    s_flash[0xe000] ^= 4;
    CHECK(esp_ota_get_boot_partition() == slot(1));
    s_flash[0xe000] ^= 4;
}

/* The running app can confirm itself, which is written down. */
static void test_mark_valid(void) {
    esp_ota_img_states_t state = ESP_OTA_IMG_NEW;
    CHECK_EQUAL(esp_ota_mark_app_valid_cancel_rollback(), ESP_OK);
    CHECK_EQUAL(esp_ota_get_state_partition(slot(0), &state), ESP_OK);
    CHECK_EQUAL(state, ESP_OTA_IMG_VALID);
    CHECK(esp_ota_get_boot_partition() == slot(0));
}

static void set_states(esp_ota_img_states_t first, esp_ota_img_states_t second) {
    esp_ota_select_entry_t entries[2];
    memcpy(&entries[0], entry(0), sizeof entries[0]);
    memcpy(&entries[1], entry(1), sizeof entries[1]);
    entries[0].ota_state = first;
    entries[1].ota_state = second;
    memcpy(s_flash + 0xd000, &entries[0], sizeof entries[0]);
    memcpy(s_flash + 0xe000, &entries[1], sizeof entries[1]);
}

/* An app that has not confirmed itself is not updated; confirmed, it is, and what was before is forgotten. */
static void test_update_waits_for_confirmation(void) {
    esp_ota_handle_t handle = 0;
    set_states(ESP_OTA_IMG_VALID, ESP_OTA_IMG_PENDING_VERIFY);
    CHECK_EQUAL(esp_ota_begin(slot(1), OTA_SIZE_UNKNOWN, &handle), ESP_ERR_OTA_ROLLBACK_INVALID_STATE);
    CHECK_EQUAL(esp_ota_mark_app_valid_cancel_rollback(), ESP_OK);
    CHECK(esp_ota_check_rollback_is_possible());
    CHECK_EQUAL(esp_ota_begin(slot(1), OTA_SIZE_UNKNOWN, &handle), ESP_OK);
    CHECK_EQUAL(entry(0)->ota_seq, 0xffffffff);
    CHECK(!esp_ota_check_rollback_is_possible());
    CHECK_EQUAL(esp_ota_mark_app_invalid_rollback_and_reboot(), ESP_ERR_OTA_ROLLBACK_FAILED);
    CHECK_EQUAL(esp_ota_abort(handle), ESP_OK);
    CHECK_EQUAL(esp_ota_abort(handle), ESP_ERR_NOT_FOUND);
}

/* Sector by sector as it writes, and on from where it was cut off: what was written before stays. */
static void test_sequential_writes(void) {
    static uint8_t image[12000];
    uint8_t digest[32];
    size_t bytes = image_create(image, "3.0.0", digest);
    esp_ota_handle_t handle = 0;
    memset(s_flash + OTA_1, 0x00, 8192);
    CHECK_EQUAL(esp_ota_begin(slot(1), OTA_WITH_SEQUENTIAL_WRITES, &handle), ESP_OK);
    CHECK_EQUAL(s_flash[OTA_1], 0x00);
    CHECK_EQUAL(esp_ota_write(handle, image, 300), ESP_OK);
    CHECK_EQUAL(s_flash[OTA_1 + 4095], 0xff);
    CHECK_EQUAL(s_flash[OTA_1 + 4096], 0x00);
    CHECK_EQUAL(esp_ota_abort(handle), ESP_OK);
    CHECK_EQUAL(esp_ota_resume(slot(1), OTA_WITH_SEQUENTIAL_WRITES, 300, &handle), ESP_OK);
    CHECK_EQUAL(esp_ota_write(handle, image + 300, bytes - 300), ESP_OK);
    CHECK_EQUAL(esp_ota_end(handle), ESP_OK);
    CHECK_EQUAL(esp_ota_begin(slot(1), OTA_WITH_SEQUENTIAL_WRITES, &handle), ESP_OK);
    CHECK_EQUAL(esp_ota_write(handle, "no image", 8), ESP_ERR_OTA_VALIDATE_FAILED);
    CHECK_EQUAL(esp_ota_end(handle), ESP_ERR_INVALID_ARG); /* nothing was written */
}

/* An app that gives itself up is not booted again, and can be found as what failed last. */
static void test_give_up(void) {
    esp_ota_img_states_t state = ESP_OTA_IMG_NEW;
    (void)image_create(s_flash + OTA_1, "3.0.0", (uint8_t[32]){0});
    CHECK_EQUAL(esp_ota_set_boot_partition(slot(1)), ESP_OK);
    CHECK(esp_ota_get_last_invalid_partition() == NULL);
    CHECK_EQUAL(esp_ota_mark_app_invalid_rollback(), ESP_OK);
    CHECK(esp_ota_get_boot_partition() == slot(0));
    CHECK(esp_ota_get_last_invalid_partition() == slot(1));
    CHECK_EQUAL(esp_ota_get_state_partition(slot(1), &state), ESP_OK);
    CHECK_EQUAL(state, ESP_OTA_IMG_INVALID);
    CHECK_EQUAL(esp_ota_erase_last_boot_app_partition(), ESP_OK);
    CHECK_EQUAL(s_flash[OTA_1], 0xff);
    CHECK_EQUAL(esp_ota_get_state_partition(slot(1), &state), ESP_ERR_NOT_FOUND);
    CHECK_EQUAL(
        esp_ota_get_state_partition(
            esp_partition_find_first(ESP_PARTITION_TYPE_DATA, ESP_PARTITION_SUBTYPE_DATA_NVS, NULL), &state),
        ESP_ERR_NOT_SUPPORTED);
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
    test_update_waits_for_confirmation();
    test_sequential_writes();
    test_give_up();
    return 0;
}
