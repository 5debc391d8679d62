/* SPDX-License-Identifier: Apache-2.0 */
/* Event loops: who is called, in what order, with whose data; what a full queue and a removal while calling
 * do. */
#include "esp_event.h"

#include "idf_check.h"

ESP_EVENT_DEFINE_BASE(FRUIT);
ESP_EVENT_DEFINE_BASE(STONE);

static char s_seen[128];

static void note(void *argument, esp_event_base_t base, int32_t id, void *data) {
    size_t used = strlen(s_seen);
    snprintf(s_seen + used, sizeof s_seen - used, "%s:%s%d=%s ", (const char *)argument, base, (int)id,
             data != NULL ? (const char *)data : "-");
}

static void expect_seen(const char *wanted) {
    if (strcmp(s_seen, wanted) != 0) {
        fprintf(stderr, "seen '%s', not '%s'\n", s_seen, wanted);
        _exit(1);
    }
    s_seen[0] = '\0';
}

static esp_event_loop_handle_t loop_without_task(int32_t queue_size) {
    const esp_event_loop_args_t args = {.queue_size = queue_size};
    esp_event_loop_handle_t loop = NULL;
    CHECK_EQUAL(esp_event_loop_create(&args, &loop), ESP_OK);
    return loop;
}

/* Handlers of any base, of a base and of one event are called in the order of registering; data are a copy.
 */
static void test_order_and_data(void) {
    esp_event_loop_handle_t loop = loop_without_task(4);
    esp_event_handler_register_with(loop, FRUIT, 1, note, "one");
    esp_event_handler_register_with(loop, ESP_EVENT_ANY_BASE, ESP_EVENT_ANY_ID, note, "all");
    esp_event_handler_register_with(loop, FRUIT, ESP_EVENT_ANY_ID, note, "fruit");
    char data[] = "pear";
    CHECK_EQUAL(esp_event_post_to(loop, FRUIT, 1, data, sizeof data, 0), ESP_OK);
    memcpy(data, "plum", sizeof data);
    CHECK_EQUAL(esp_event_post_to(loop, STONE, 1, NULL, 0, 0), ESP_OK);
    expect_seen("");
    CHECK_EQUAL(esp_event_loop_run(loop, 0), ESP_OK); /* no time: one event */
    expect_seen("one:FRUIT1=pear all:FRUIT1=pear fruit:FRUIT1=pear ");
    CHECK_EQUAL(esp_event_loop_run(loop, 0), ESP_OK);
    expect_seen("all:STONE1=- ");
    CHECK_EQUAL(esp_event_post_to(loop, ESP_EVENT_ANY_BASE, 1, NULL, 0, 0), ESP_ERR_INVALID_ARG);
    CHECK_EQUAL(esp_event_post_to(loop, FRUIT, ESP_EVENT_ANY_ID, NULL, 0, 0), ESP_ERR_INVALID_ARG);
    CHECK_EQUAL(esp_event_handler_register_with(loop, ESP_EVENT_ANY_BASE, 1, note, "x"), ESP_ERR_INVALID_ARG);
    CHECK_EQUAL(esp_event_loop_delete(loop), ESP_OK);
}

/* The same handler twice is one, with the later argument; instances are as many as were registered. */
static void test_instances(void) {
    esp_event_loop_handle_t loop = loop_without_task(4);
    esp_event_handler_instance_t first;
    esp_event_handler_instance_t second;
    esp_event_handler_register_with(loop, FRUIT, 1, note, "a");
    esp_event_handler_register_with(loop, FRUIT, 1, note, "b");
    esp_event_handler_instance_register_with(loop, FRUIT, 1, note, "c", &first);
    esp_event_handler_instance_register_with(loop, FRUIT, 1, note, "d", &second);
    esp_event_post_to(loop, FRUIT, 1, NULL, 0, 0);
    esp_event_loop_run(loop, 0);
    expect_seen("b:FRUIT1=- c:FRUIT1=- d:FRUIT1=- ");
    CHECK_EQUAL(esp_event_handler_instance_unregister_with(loop, FRUIT, 1, first), ESP_OK);
    CHECK_EQUAL(esp_event_handler_unregister_with(loop, FRUIT, 1, note), ESP_OK);
    esp_event_post_to(loop, FRUIT, 1, NULL, 0, 0);
    esp_event_loop_run(loop, 0);
    expect_seen("d:FRUIT1=- ");
    esp_event_post_to(loop, FRUIT, 1, "left", 5, 0); /* freed with the loop */
    esp_event_loop_delete(loop);
}

static esp_event_loop_handle_t s_loop;
static esp_event_handler_instance_t s_once;

static void once(void *argument, esp_event_base_t base, int32_t id, void *data) {
    note(argument, base, id, data);
    CHECK_EQUAL(esp_event_handler_instance_unregister_with(s_loop, FRUIT, 1, s_once), ESP_OK);
    CHECK_EQUAL(esp_event_handler_register_with(s_loop, FRUIT, 2, note, "new"), ESP_OK);
    CHECK_EQUAL(esp_event_post_to(s_loop, FRUIT, 2, NULL, 0, portMAX_DELAY), ESP_OK);
    /* Its own loop's queue is full now: it does not wait for itself. */
    CHECK_EQUAL(esp_event_post_to(s_loop, FRUIT, 2, NULL, 0, portMAX_DELAY), ESP_ERR_TIMEOUT);
}

/* A handler may remove itself and post; a post to a full queue fails, from a handler at once. */
static void test_inside_a_handler(void) {
    s_loop = loop_without_task(1);
    esp_event_handler_instance_register_with(s_loop, FRUIT, 1, once, "once", &s_once);
    esp_event_handler_register_with(s_loop, FRUIT, 1, note, "next");
    CHECK_EQUAL(esp_event_post_to(s_loop, FRUIT, 1, NULL, 0, 0), ESP_OK);
    CHECK_EQUAL(esp_event_post_to(s_loop, FRUIT, 1, NULL, 0, 2), ESP_ERR_TIMEOUT);
    esp_event_loop_run(s_loop, 0);
    esp_event_loop_run(s_loop, 0);
    CHECK_EQUAL(esp_event_post_to(s_loop, FRUIT, 1, NULL, 0, 0), ESP_OK);
    esp_event_loop_run(s_loop, 0);
    expect_seen("once:FRUIT1=- next:FRUIT1=- new:FRUIT2=- next:FRUIT1=- ");
    esp_event_loop_delete(s_loop);
}

static SemaphoreHandle_t s_called;
static char s_task_name[configMAX_TASK_NAME_LEN];
static uint32_t s_value;

static void note_task(void *argument, esp_event_base_t base, int32_t id, void *data) {
    (void)argument;
    (void)base;
    (void)id;
    strcpy(s_task_name, pcTaskGetName(NULL));
    s_value = data != NULL ? *(uint32_t *)data : 0;
    xSemaphoreGive(s_called);
}

static int64_t post_from_interrupt(void *argument) {
    (void)argument;
    uint32_t value = 4711;
    CHECK_EQUAL(esp_event_isr_post(FRUIT, 1, &value, sizeof value, NULL), ESP_OK);
    CHECK_EQUAL(esp_event_isr_post(FRUIT, 1, &value, 5, NULL), ESP_ERR_INVALID_ARG);
    return INT64_MAX;
}

/* The default loop is one, handles in "sys_evt", and takes four bytes from an interrupt; without it nothing
 * is. */
static void test_default_loop(void) {
    CHECK_EQUAL(esp_event_post(FRUIT, 1, NULL, 0, 0), ESP_ERR_INVALID_STATE);
    CHECK_EQUAL(esp_event_handler_register(FRUIT, 1, note_task, NULL), ESP_ERR_INVALID_STATE);
    CHECK_EQUAL(esp_event_loop_delete_default(), ESP_ERR_INVALID_STATE);
    CHECK_EQUAL(esp_event_loop_create_default(), ESP_OK);
    CHECK_EQUAL(esp_event_loop_create_default(), ESP_ERR_INVALID_STATE);
    s_called = xSemaphoreCreateBinary();
    CHECK_EQUAL(esp_event_handler_register(FRUIT, ESP_EVENT_ANY_ID, note_task, NULL), ESP_OK);
    uint32_t value = 42;
    CHECK_EQUAL(esp_event_post(FRUIT, 1, &value, sizeof value, 0), ESP_OK);
    CHECK(xSemaphoreTake(s_called, portMAX_DELAY));
    CHECK(strcmp(s_task_name, "sys_evt") == 0 && s_value == 42);
    vboard_interrupt_t *interrupt = vboard_interrupt_new(0, post_from_interrupt, NULL);
    vboard_interrupt_raise(interrupt);
    CHECK(xSemaphoreTake(s_called, portMAX_DELAY));
    CHECK_EQUAL(s_value, 4711);
    vboard_interrupt_wait(interrupt);
    vboard_interrupt_delete(interrupt);
    CHECK_EQUAL(esp_event_loop_delete_default(), ESP_OK);
}

void app_main(void) {
    test_order_and_data();
    test_instances();
    test_inside_a_handler();
    test_default_loop();
    exit(0);
}
