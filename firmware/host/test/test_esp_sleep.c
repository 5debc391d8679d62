/* SPDX-License-Identifier: Apache-2.0 */
/* What products call in passing: sleep, the configuration of threads, event descriptors, the list of timers,
 * and the board's date. */
#include <errno.h>
#include <stdarg.h>
#include <sys/wait.h>
#include <time.h>

#include "esp_log.h"
#include "esp_pthread.h"
#include "esp_sleep.h"
#include "esp_timer.h"
#include "esp_vfs.h"
#include "esp_vfs_eventfd.h"
#include "idf_check.h"

enum { SLEEP_US = 50000 };

/* Light sleep takes its time and says what ended it; without the timer nothing would. */
static void test_light_sleep(void) {
    CHECK_EQUAL(esp_sleep_get_wakeup_cause(), ESP_SLEEP_WAKEUP_UNDEFINED);
    CHECK_EQUAL(esp_light_sleep_start(), ESP_ERR_SLEEP_REJECT);
    CHECK_EQUAL(esp_sleep_disable_wakeup_source(ESP_SLEEP_WAKEUP_TIMER), ESP_ERR_INVALID_STATE);
    CHECK_EQUAL(esp_sleep_enable_timer_wakeup(UINT64_MAX), ESP_ERR_INVALID_ARG);
    CHECK_EQUAL(esp_sleep_enable_timer_wakeup(SLEEP_US), ESP_OK);
    const int64_t before_us = esp_timer_get_time();
    CHECK_EQUAL(esp_light_sleep_start(), ESP_OK);
    CHECK(esp_timer_get_time() - before_us >= SLEEP_US);
    CHECK_EQUAL(esp_sleep_get_wakeup_cause(), ESP_SLEEP_WAKEUP_TIMER);
    CHECK_EQUAL(esp_sleep_get_wakeup_causes(), 1 << ESP_SLEEP_WAKEUP_TIMER);
    CHECK_EQUAL(esp_sleep_disable_wakeup_source(ESP_SLEEP_WAKEUP_ALL), ESP_OK);
    CHECK_EQUAL(esp_light_sleep_start(), ESP_ERR_SLEEP_REJECT);
}

/* Each thread has its own configuration of the threads that it makes. */
static void test_pthread_configuration(void) {
    esp_pthread_cfg_t config = esp_pthread_get_default_config(), found;
    CHECK_EQUAL(config.stack_size, 3072);
    CHECK_EQUAL(esp_pthread_get_cfg(&found), ESP_ERR_NOT_FOUND);
    config.stack_size = 100;
    CHECK_EQUAL(esp_pthread_set_cfg(&config), ESP_ERR_INVALID_ARG);
    config.stack_size = 8192;
    config.thread_name = "pump";
    CHECK_EQUAL(esp_pthread_set_cfg(&config), ESP_OK);
    CHECK_EQUAL(esp_pthread_get_cfg(&found), ESP_OK);
    CHECK(found.stack_size == 8192 && strcmp(found.thread_name, "pump") == 0);
}

/* A descriptor adds up what is written to it, and select() tells of it. */
static void test_eventfd(void) {
    const esp_vfs_eventfd_config_t config = ESP_VFS_EVENTD_CONFIG_DEFAULT();
    uint64_t value = 3;
    CHECK(eventfd(0, 0) == -1 && errno == EPERM);
    CHECK_EQUAL(esp_vfs_eventfd_register(&config), ESP_OK);
    CHECK_EQUAL(esp_vfs_eventfd_register(&config), ESP_ERR_INVALID_STATE);
    int fd = eventfd(0, EFD_SUPPORT_ISR);
    CHECK(fd >= 0 && eventfd(0, 1) == -1);
    struct timeval none = {0};
    fd_set set;
    FD_ZERO(&set);
    FD_SET(fd, &set);
    CHECK_EQUAL(select(fd + 1, &set, NULL, NULL, &none), 0);
    CHECK_EQUAL(write(fd, &value, sizeof value), sizeof value);
    CHECK_EQUAL(write(fd, &value, sizeof value), sizeof value);
    FD_SET(fd, &set);
    CHECK_EQUAL(select(fd + 1, &set, NULL, NULL, &none), 1);
    CHECK_EQUAL(read(fd, &value, sizeof value), sizeof value);
    CHECK_EQUAL(value, 6);
    close(fd);
    CHECK_EQUAL(esp_vfs_eventfd_unregister(), ESP_OK);
}

static void do_nothing(void *unused) {
    (void)unused;
}

/* Timers that run are listed, the next one first. */
static void test_timer_dump(void) {
    const esp_timer_create_args_t args = {.callback = do_nothing, .name = "x"};
    esp_timer_handle_t late, soon;
    char *text = NULL;
    size_t bytes = 0;
    FILE *stream = open_memstream(&text, &bytes);
    CHECK_EQUAL(esp_timer_create(&args, &late), ESP_OK);
    CHECK_EQUAL(esp_timer_create(&args, &soon), ESP_OK);
    CHECK_EQUAL(esp_timer_start_once(late, 90000000), ESP_OK);
    CHECK_EQUAL(esp_timer_start_periodic(soon, 80000000), ESP_OK);
    CHECK_EQUAL(esp_timer_dump(stream), ESP_OK);
    fclose(stream);
    void *first, *second;
    long long period;
    CHECK(strncmp(text, "Timer stats:\nName ", 18) == 0);
    const char *line = strstr(text, "timer@");
    CHECK(line != NULL && sscanf(line, "timer@%p %lld", &first, &period) == 2);
    CHECK(first == soon && period == 80000000);
    line = strstr(line + 1, "timer@");
    CHECK(line != NULL && sscanf(line, "timer@%p %lld", &second, &period) == 2);
    CHECK(second == late && period == 0);
    CHECK_EQUAL(esp_timer_stop(late), ESP_OK);
    CHECK_EQUAL(esp_timer_stop(soon), ESP_OK);
    free(text);
}

static char s_logged[256];

static int keep_log(const char *format, va_list arguments) {
    const size_t used = strlen(s_logged);
    return vsnprintf(s_logged + used, sizeof s_logged - used, format, arguments);
}

/* A dump has sixteen bytes a line, and what of them is a character. */
static void test_hexdump(void) {
    static const char data[] = "0123456789abcdef\n";
    vprintf_like_t before = esp_log_set_vprintf(keep_log);
    ESP_LOG_BUFFER_HEXDUMP("dump", data, 17, ESP_LOG_INFO);
    esp_log_set_vprintf(before);
    CHECK(strstr(s_logged, "30 31 32 33 34 35 36 37  38 39 61 62 63 64 65 66  |0123456789abcdef|\n") != NULL);
    CHECK(strstr(s_logged, "   0a ") != NULL && strstr(s_logged, " |.|\n") != NULL);
}

/* The date at reset is what the board says, if it says one: tests/firmware/test_host_idf.py. */
static void test_date(void) {
    const char *said = getenv("VBOARD_TIME_S");
    if (said != NULL) {
        const long long since_s = (long long)time(NULL) - atoll(said);
        CHECK(since_s >= 0 && since_s < 60);
    }
}

/* Deep sleep ends the program, after its time and as a restart does. */
static void test_deep_sleep(void) {
    const int64_t before_us = esp_timer_get_time();
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        esp_deep_sleep(SLEEP_US);
    }
    CHECK_EQUAL(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(esp_timer_get_time() - before_us >= SLEEP_US);
}

void app_main(void) {
    test_light_sleep();
    test_pthread_configuration();
    test_eventfd();
    test_timer_dump();
    test_hexdump();
    test_date();
    test_deep_sleep();
    _exit(0);
}
