/* SPDX-License-Identifier: Apache-2.0 */
/* An update over HTTP(S): what is asked, what is written, what boots next, and which events say so. TLS
 * itself is asked by tests/firmware/test_host_https.py; here the server speaks plain HTTP. */
#include "flash_fixture.h"

#include "esp_event.h"
#include "esp_https_ota.h"
#include "esp_ota_ops.h"
#include "http_peer.h"

enum { IMAGE_DATA_BYTES = 5000, ANSWER_BYTES = 8192, SHORT_MS = 60 };

static uint8_t *s_flash;
static uint8_t s_image[ANSWER_BYTES];
static size_t s_image_bytes;
static char s_seen[64];
static esp_chip_id_t s_chip_seen = ESP_CHIP_ID_INVALID;

/* Before the program's own start looks at the flash. */
__attribute__((constructor)) static void make_flash(void) {
    uint8_t digest[32];
    s_flash = flash_create("10000");
    (void)image_create(s_flash + OTA_0, "1.0.0", digest);
    s_image_bytes = image_create_of(s_image, "2.0.0", IMAGE_DATA_BYTES, digest);
}

static const esp_partition_t *slot(int index) {
    return esp_partition_find_first(ESP_PARTITION_TYPE_APP, ESP_PARTITION_SUBTYPE_OTA(index), NULL);
}

static void forget_update(void) {
    memset(s_flash + 0xd000, 0xff, 0x2000);
    memset(s_flash + OTA_1, 0x00, ANSWER_BYTES);
    s_seen[0] = '\0';
}

static void on_event(void *unused, esp_event_base_t base, int32_t id, void *data) {
    (void)unused;
    CHECK(base == ESP_HTTPS_OTA_EVENT);
    size_t used = strlen(s_seen);
    if (used > 0 && s_seen[used - 1] == (char)('0' + id)) {
        return; /* as many writes as there are pieces */
    }
    if (id == ESP_HTTPS_OTA_VERIFY_CHIP_ID) {
        s_chip_seen = *(esp_chip_id_t *)data;
    }
    s_seen[used] = (char)('0' + id);
    s_seen[used + 1] = '\0';
}

/* An answer with a piece of the image. */
static turn_t answer_of(char *kept, const char *status, size_t first, size_t bytes) {
    int head = snprintf(kept, ANSWER_BYTES, "HTTP/1.1 %s\r\nContent-Length: %zu\r\n\r\n", status, bytes);
    memcpy(kept + head, s_image + first, bytes);
    return (turn_t){.answer = kept, .bytes = (size_t)head + bytes};
}

static esp_http_client_config_t http(const char *path) {
    return (esp_http_client_config_t){.url = url(path), .cert_pem = "some", .keep_alive_enable = true};
}

static bool image_is_in_slot(void) {
    return memcmp(s_flash + OTA_1, s_image, s_image_bytes) == 0;
}

/* The whole of it: the image is in the other slot, which boots next, and the events say so in their order. */
static void test_update(void) {
    static char body[ANSWER_BYTES];
    turn_t turns[] = {answer_of(body, "200 OK", 0, s_image_bytes)};
    forget_update();
    PEER_START(turns);
    const esp_http_client_config_t config = http("/app.bin");
    CHECK_EQUAL(esp_https_ota(&(esp_https_ota_config_t){.http_config = &config}), ESP_OK);
    CHECK(image_is_in_slot());
    CHECK(esp_ota_get_boot_partition() == slot(1));
    CHECK_SOON(strchr(s_seen, '8') != NULL);
    CHECK_TEXT(s_seen, "0134678");
    CHECK_EQUAL(s_chip_seen, CONFIG_IDF_FIRMWARE_CHIP_ID);
}

/* In steps, with the description of what comes before anything is written, through a redirect. */
static void test_steps(void) {
    static char body[ANSWER_BYTES];
    turn_t turns[] = {{.answer = "HTTP/1.1 302 Found\r\nLocation: /new.bin\r\nContent-Length: 4\r\n\r\nno, "},
                      answer_of(body, "200 OK", 0, s_image_bytes)};
    forget_update();
    PEER_START(turns);
    const esp_http_client_config_t config = http("/app.bin");
    const esp_https_ota_config_t ota = {.http_config = &config, .bulk_flash_erase = true};
    esp_https_ota_handle_t handle = NULL;
    esp_app_desc_t description;
    esp_err_t err;
    CHECK_EQUAL(esp_https_ota_begin(&ota, &handle), ESP_OK);
    CHECK(strstr(s_asked, "GET /new.bin HTTP/1.1") != NULL);
    CHECK_EQUAL(esp_https_ota_get_status_code(handle), 200);
    CHECK_EQUAL(esp_https_ota_get_image_size(handle), s_image_bytes);
    CHECK_EQUAL(esp_https_ota_get_image_len_read(handle), -1);
    CHECK_EQUAL(esp_https_ota_get_img_desc(handle, &description), ESP_OK);
    CHECK_TEXT(description.version, "2.0.0");
    CHECK_EQUAL(s_flash[OTA_1], 0x00);
    do {
        err = esp_https_ota_perform(handle);
    } while (err == ESP_ERR_HTTPS_OTA_IN_PROGRESS);
    CHECK_EQUAL(err, ESP_OK);
    CHECK_EQUAL(esp_https_ota_get_image_len_read(handle), s_image_bytes);
    CHECK(esp_https_ota_is_complete_data_received(handle));
    CHECK(esp_ota_get_boot_partition() == slot(0)); /* until it is finished */
    CHECK_EQUAL(esp_https_ota_finish(handle), ESP_OK);
    CHECK(image_is_in_slot() && esp_ota_get_boot_partition() == slot(1));
}

/* By ranges of a size, after a HEAD. */
static void test_partial(void) {
    static char bodies[3][ANSWER_BYTES];
    const size_t last = s_image_bytes - 4096;
    turn_t turns[] = {{.answer = text("HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", s_image_bytes)},
                      answer_of(bodies[0], "206 Partial Content", 0, 2048),
                      answer_of(bodies[1], "206 Partial Content", 2048, 2048),
                      answer_of(bodies[2], "206 Partial Content", 4096, last)};
    forget_update();
    PEER_START(turns);
    const esp_http_client_config_t config = http("/app.bin");
    CHECK_EQUAL(esp_https_ota(&(esp_https_ota_config_t){
                    .http_config = &config, .partial_http_download = true, .max_http_request_size = 2048}),
                ESP_OK);
    CHECK(image_is_in_slot());
    CHECK(strstr(s_asked, "HEAD /app.bin ") == s_asked);
    CHECK(strstr(s_asked, "Range: bytes=0-2047\r\n") != NULL);
    CHECK(strstr(s_asked, "Range: bytes=2048-4095\r\n") != NULL);
    CHECK(strstr(s_last, "Range: bytes=4096-\r\n") != NULL);
}

static esp_err_t perform_all(esp_https_ota_handle_t handle) {
    esp_err_t err;
    do {
        err = esp_https_ota_perform(handle);
    } while (err == ESP_ERR_HTTPS_OTA_IN_PROGRESS);
    return err;
}

/* Cut off, the rest is asked for; a server that has no ranges sends it all again. */
static void test_resume(bool has_ranges) {
    static char bodies[2][ANSWER_BYTES];
    const size_t before = 2000;
    turn_t turns[2] = {answer_of(bodies[0], "206 Partial Content", before, s_image_bytes - before)};
    if (!has_ranges) {
        turns[0] = answer_of(bodies[0], "200 OK", 0, s_image_bytes);
        turns[1] = answer_of(bodies[1], "200 OK", 0, s_image_bytes);
    }
    forget_update();
    memset(s_flash + OTA_1, 0xff, ANSWER_BYTES);
    memcpy(s_flash + OTA_1, s_image, before);
    peer_start(turns, has_ranges ? 1 : 2);
    const esp_http_client_config_t config = http("/app.bin");
    const esp_https_ota_config_t ota = {
        .http_config = &config, .ota_resumption = true, .ota_image_bytes_written = before};
    esp_https_ota_handle_t handle = NULL;
    CHECK_EQUAL(esp_https_ota(&ota), ESP_ERR_NOT_SUPPORTED);
    CHECK_EQUAL(esp_https_ota_begin(&ota, &handle), ESP_OK);
    CHECK(strstr(s_asked, "Range: bytes=2000-\r\n") != NULL);
    CHECK((strstr(s_last, "Range: ") != NULL) == has_ranges);
    CHECK_EQUAL(perform_all(handle), ESP_OK);
    CHECK_EQUAL(esp_https_ota_finish(handle), ESP_OK);
    CHECK(image_is_in_slot());
}

/* What cannot be had is not written, and the slot that runs goes on to boot. */
static void test_not_there(const char *status, esp_err_t expected) {
    turn_t turns[] = {{.answer = text("HTTP/1.1 %s\r\nContent-Length: 1\r\n\r\nx", status)}};
    forget_update();
    PEER_START(turns);
    const esp_http_client_config_t config = http("/app.bin");
    esp_https_ota_handle_t handle = &turns;
    CHECK_EQUAL(esp_https_ota_begin(&(esp_https_ota_config_t){.http_config = &config}, &handle), expected);
    CHECK(handle == NULL);
    CHECK_EQUAL(s_flash[OTA_1], 0x00);
    CHECK(esp_ota_get_boot_partition() == slot(0));
}

static esp_err_t update_from(const turn_t *turn) {
    forget_update();
    peer_start(turn, 1);
    esp_http_client_config_t config = http("/app.bin");
    config.timeout_ms = 5000;
    const esp_err_t err = esp_https_ota(&(esp_https_ota_config_t){.http_config = &config});
    CHECK(esp_ota_get_boot_partition() == slot(0));
    return err;
}

/* Another chip's image, a chip of a later revision's, one that is damaged, cut short, none, or too short. */
static void test_bad_images(void) {
    static char body[ANSWER_BYTES];
    turn_t turn = answer_of(body, "200 OK", 0, s_image_bytes);
    char *image = body + (turn.bytes - s_image_bytes);
    esp_image_header_t *header = (esp_image_header_t *)(void *)image;
    header->chip_id = ESP_CHIP_ID_ESP32C6;
    CHECK_EQUAL(update_from(&turn), ESP_ERR_INVALID_VERSION);
    CHECK_EQUAL(s_flash[OTA_1], 0x00);
    header->chip_id = (esp_chip_id_t)CONFIG_IDF_FIRMWARE_CHIP_ID;
    header->min_chip_rev_full = 9900;
    CHECK_EQUAL(update_from(&turn), ESP_ERR_INVALID_VERSION);
    header->min_chip_rev_full = 0;
    image[3000] ^= 1;
    CHECK_EQUAL(update_from(&turn), ESP_ERR_OTA_VALIDATE_FAILED);
    image[3000] ^= 1;
    turn.bytes -= 40;
    turn.closes = true;
    CHECK_EQUAL(update_from(&turn), ESP_FAIL);
    image[0] = 'x';
    CHECK_EQUAL(update_from(&turn), ESP_ERR_OTA_VALIDATE_FAILED);
    turn = (turn_t){.answer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nshort"};
    CHECK_EQUAL(update_from(&turn), ESP_FAIL);
}

static esp_err_t refuse_client(esp_http_client_handle_t client) {
    CHECK(client != NULL);
    return ESP_ERR_NOT_ALLOWED;
}

/* Without a way to verify the server nothing is asked; neither where the product's own callback says no. */
static void test_refusals(void) {
    esp_https_ota_handle_t handle = NULL;
    const esp_http_client_config_t open = {.url = "http://127.0.0.1:9/"};
    const esp_http_client_config_t config = {.url = "http://127.0.0.1:9/", .cert_pem = "some"};
    CHECK_EQUAL(esp_https_ota_begin(&(esp_https_ota_config_t){.http_config = &open}, &handle),
                ESP_ERR_INVALID_ARG);
    CHECK_EQUAL(esp_https_ota_begin(&(esp_https_ota_config_t){.http_config = NULL}, &handle),
                ESP_ERR_INVALID_ARG);
    CHECK_EQUAL(
        esp_https_ota_begin(
            &(esp_https_ota_config_t){.http_config = &config, .http_client_init_cb = refuse_client}, &handle),
        ESP_ERR_NOT_ALLOWED);
    CHECK_EQUAL(esp_https_ota(NULL), ESP_ERR_INVALID_ARG);
    CHECK_EQUAL(esp_https_ota_perform(NULL), ESP_ERR_INVALID_ARG);
    CHECK_EQUAL(esp_https_ota_finish(NULL), ESP_ERR_INVALID_ARG);
    CHECK_EQUAL(esp_https_ota_abort(NULL), ESP_ERR_INVALID_ARG);
    CHECK_EQUAL(esp_https_ota_get_image_size(NULL), -1);
}

/* Given up half way, the slot can be written again. */
static void test_abort(void) {
    static char body[ANSWER_BYTES];
    turn_t turns[] = {answer_of(body, "200 OK", 0, s_image_bytes)};
    forget_update();
    PEER_START(turns);
    const esp_http_client_config_t config = http("/app.bin");
    esp_https_ota_handle_t handle = NULL;
    CHECK_EQUAL(esp_https_ota_begin(&(esp_https_ota_config_t){.http_config = &config}, &handle), ESP_OK);
    CHECK_EQUAL(esp_https_ota_perform(handle), ESP_ERR_HTTPS_OTA_IN_PROGRESS);
    CHECK_EQUAL(esp_https_ota_get_image_len_read(handle), 1024);
    CHECK(!esp_https_ota_is_complete_data_received(handle));
    CHECK_EQUAL(esp_https_ota_abort(handle), ESP_OK);
    CHECK(esp_ota_get_boot_partition() == slot(0));
}

void app_main(void) {
    CHECK_EQUAL(esp_event_loop_create_default(), ESP_OK);
    CHECK_EQUAL(esp_event_handler_register(ESP_HTTPS_OTA_EVENT, ESP_EVENT_ANY_ID, on_event, NULL), ESP_OK);
    test_update();
    test_steps();
    test_partial();
    test_resume(true);
    test_resume(false);
    test_not_there("404 Not Found", ESP_FAIL);
    test_not_there("503 Busy", ESP_FAIL);
    test_not_there("304 Not Modified", ESP_ERR_HTTP_NOT_MODIFIED);
    test_not_there("416 No Range", ESP_ERR_HTTP_RANGE_NOT_SATISFIABLE);
    test_bad_images();
    test_refusals();
    test_abort();
    test_update();
    _exit(0);
}
