/* SPDX-License-Identifier: Apache-2.0 */
/* Strict mode: what a chip would not let pass. Without VIOLATION in the environment, what must hold in any
 * mode and what the program lives through; with it, one violation, for the harness to see how it ends. With
 * COST, what it costs. */
#define _GNU_SOURCE
#include <time.h>

#include "esp_heap_caps.h"
#include "esp_log.h"
#include "esp_rom_sys.h"
#include "esp_task_wdt.h"
#include "esp_timer.h"
#include "idf_check.h"
#include "kernel.h"
#include "rtos/interrupt.h"

#define TOO_MUCH (400U * 1024U)
#define PIECE (100U * 1024U)

static portMUX_TYPE s_lock = portMUX_INITIALIZER_UNLOCKED;
static size_t s_refused_bytes;
static const char *s_refused_by;

static void note_refused(size_t bytes, uint32_t caps, const char *function) {
    (void)caps;
    s_refused_bytes = bytes;
    s_refused_by = function;
}

static void nothing(void *argument) {
    (void)argument;
    vTaskDelete(NULL);
}

/* A chip's heap ends, for each of the calls; what was refused is told to who asked to hear of it. */
static void test_refused(void) {
    void *volatile small = malloc(16); /* volatile: a block that nobody looks at would be left out */
    CHECK_EQUAL(heap_caps_register_failed_alloc_callback(NULL), ESP_ERR_INVALID_ARG);
    CHECK_EQUAL(heap_caps_register_failed_alloc_callback(note_refused), ESP_OK);
    void *volatile none = malloc(TOO_MUCH);
    CHECK(none == NULL);
    CHECK_EQUAL(s_refused_bytes, TOO_MUCH);
    CHECK(strcmp(s_refused_by, "heap_caps_malloc_default") == 0);
    none = calloc(1024, TOO_MUCH / 1024);
    CHECK(none == NULL);
    none = realloc(small, TOO_MUCH);
    CHECK(none == NULL);
    none = heap_caps_malloc(TOO_MUCH + 1, MALLOC_CAP_INTERNAL);
    CHECK(none == NULL);
    CHECK_EQUAL(s_refused_bytes, TOO_MUCH + 1);
    CHECK(strcmp(s_refused_by, "heap_caps_malloc") == 0);
    none = heap_caps_aligned_alloc(64, TOO_MUCH, MALLOC_CAP_8BIT);
    CHECK(none == NULL);
    none = heap_caps_malloc(16, MALLOC_CAP_SPIRAM);
    CHECK(none == NULL);
    CHECK_EQUAL(s_refused_bytes, 16);
    CHECK(small != NULL);
    free(small);
}

/* What is given back can be had again, however often; copies of texts count, and so do stacks. */
static void test_counted(void) {
    for (int i = 0; i < 100; i++) {
        void *volatile first = malloc(PIECE);
        void *volatile second = realloc(NULL, PIECE / 2);
        CHECK(first != NULL && second != NULL);
        second = realloc(second, PIECE);
        void *volatile third = malloc(PIECE);
        CHECK(second != NULL && third == NULL);
        TaskHandle_t task = NULL;
        CHECK_EQUAL(xTaskCreate(nothing, "large", PIECE, NULL, 20, &task),
                    errCOULD_NOT_ALLOCATE_REQUIRED_MEMORY);
        free(first);
        free(second);
        char *volatile text = strdup("text");
        CHECK(strcmp(text, "text") == 0);
        free(text);
        text = strndup("text", 2);
        CHECK(strcmp(text, "te") == 0);
        free(text);
        CHECK_EQUAL(asprintf((char **)&text, "%d", i + 1000), 4);
        CHECK_EQUAL(strlen(text), 4);
        free(text);
    }
    s_refused_bytes = 0;
    CHECK_EQUAL(xTaskCreatePinnedToCore(nothing, "large", TOO_MUCH, NULL, 20, NULL, 0),
                errCOULD_NOT_ALLOCATE_REQUIRED_MEMORY);
    CHECK_EQUAL(s_refused_bytes, TOO_MUCH);
}

typedef struct {
    TaskHandle_t waiter;
    BaseType_t woken;
} wake_t;

static bool wake(void *context) {
    wake_t *given = context;
    given->woken = pdFALSE;
    vTaskNotifyGiveFromISR(given->waiter, &given->woken);
    return given->woken;
}

static bool resume(void *context) {
    wake_t *given = context;
    given->woken = xTaskResumeFromISR(given->waiter);
    return given->woken;
}

static void wait_for_notifications(void *argument) {
    (void)argument;
    for (;;) {
        ulTaskNotifyTake(pdTRUE, portMAX_DELAY);
    }
}

static void suspend_itself(void *argument) {
    (void)argument;
    for (;;) {
        vTaskSuspend(NULL);
    }
}

static BaseType_t raise_for(rtos_interrupt_handler_t handler, wake_t *given, UBaseType_t priority,
                            BaseType_t core) {
    bool notified = handler == wake;
    given->waiter = spawn(notified ? wait_for_notifications : suspend_itself, NULL, priority, core);
    CHECK_SOON(eTaskGetState(given->waiter) == (notified ? eBlocked : eSuspended));
    CHECK_EQUAL(rtos_interrupt_install(handler, given), ESP_OK);
    rtos_interrupt_raise();
    rtos_interrupt_remove();
    vTaskDelete(given->waiter);
    return given->woken;
}

/* A core is to switch to a task that an interrupt woke if it outranks the one that was interrupted, and may
 * run there; of a task that is resumed an equal is enough. */
static void test_woken(void) {
    wake_t given;
    CHECK_EQUAL(raise_for(wake, &given, 20, 0), pdTRUE);
    CHECK_EQUAL(raise_for(wake, &given, 11, tskNO_AFFINITY), pdTRUE);
    CHECK_EQUAL(raise_for(wake, &given, 10, 0), pdFALSE);
    CHECK_EQUAL(raise_for(wake, &given, 5, 0), pdFALSE);
    CHECK_EQUAL(raise_for(resume, &given, 20, 0), pdTRUE);
    CHECK_EQUAL(raise_for(resume, &given, 10, 0), pdTRUE);
    CHECK_EQUAL(raise_for(resume, &given, 9, 0), pdFALSE);
    if (portNUM_PROCESSORS > 1) {
        CHECK_EQUAL(raise_for(wake, &given, 20, portNUM_PROCESSORS - 1), pdFALSE);
    }
    given.waiter = spawn(wait_for_notifications, NULL, 5, 0);
    CHECK_SOON(eTaskGetState(given.waiter) == eBlocked);
    (void)wake(&given); /* by a task: the one that would be preempted is the caller */
    CHECK_EQUAL(given.woken, pdFALSE);
    vTaskDelete(given.waiter);
}

static volatile float s_float = 1.1F;
static volatile double s_double = 1.1;

static bool compute_double(void *context) {
    (void)context;
    s_double = s_double * s_double / 3.0;
    return false;
}

/* What an interrupt may do: print by the ROM's printf, and compute with double precision, which no FPU does.
 */
static bool behave(void *context) {
    ESP_EARLY_LOGI("isr", "early");
    esp_rom_printf("rom\n");
    return compute_double(context);
}

static void test_allowed(void) {
    CHECK_EQUAL(rtos_interrupt_install(behave, NULL), ESP_OK);
    for (int i = 0; i < 3; i++) {
        rtos_interrupt_raise();
    }
    rtos_interrupt_remove();
    float before = s_float;
    s_float = before * before / 3.0F; /* in a task */
}

static void burn_ms(int64_t ms) {
    int64_t until_us = esp_timer_get_time() + ms * 1000;
    while (esp_timer_get_time() < until_us) {
    }
}

static void burn_cpu_ms(int64_t ms) {
    struct timespec used;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    const int64_t until_ns = used.tv_sec * INT64_C(1000000000) + used.tv_nsec + ms * 1000000;
    do {
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    } while (used.tv_sec * INT64_C(1000000000) + used.tv_nsec < until_ns);
}

static void say_halfway(void) {
    static const char line[] = "halfway\n";
    (void)!write(STDOUT_FILENO, line, sizeof line - 1);
}

/* As long as an interrupt watchdog allows, and longer where it is not one piece. */
static void test_short_sections(void) {
    for (int i = 0; i < 4; i++) {
        portENTER_CRITICAL(&s_lock);
        burn_ms(90);
        portEXIT_CRITICAL(&s_lock);
    }
}

/* ---- violations ---- */

static bool log_it(void *context) {
    (void)context;
    ESP_LOGI("isr", "logged");
    return false;
}

static bool print_it(void *context) {
    (void)context;
    puts("printed");
    return false;
}

static bool allocate_it(void *context) {
    void *volatile block = malloc(16);
    (void)context;
    free(block);
    return false;
}

static bool compute_float(void *context) {
    float before = s_float;
    (void)context;
    s_float = before * before / 3.0F;
    return false;
}

static bool stay(void *context) {
    (void)context;
    burn_cpu_ms(600);
    return false;
}

static void interrupt(rtos_interrupt_handler_t handler) {
    CHECK_EQUAL(rtos_interrupt_install(handler, NULL), ESP_OK);
    rtos_interrupt_raise();
    rtos_interrupt_raise();
    rtos_interrupt_remove();
}

static void mask_for_long(void) {
    portENTER_CRITICAL(&s_lock);
    burn_cpu_ms(600);
    portEXIT_CRITICAL(&s_lock);
}

static void print_masked(void) {
    portENTER_CRITICAL(&s_lock);
    printf("printed\n");
    portEXIT_CRITICAL(&s_lock);
}

static void take_too_much(void) {
    for (int i = 0; i < 2; i++) {
        void *volatile block = malloc(TOO_MUCH);
        printf("malloc: %s\n", block != NULL ? "memory" : "NULL");
        free(block);
    }
}

/* The idle task is looked after each second; the first look has nothing to compare with. */
static void hog(void) {
    const esp_task_wdt_config_t config = {.timeout_ms = 500, .idle_core_mask = 1, .trigger_panic = true};
    CHECK_EQUAL(esp_task_wdt_reconfigure(&config), ESP_OK);
    burn_cpu_ms(2500);
}

/* It waits more often than the time-out: the idle task runs. */
static void be_busy(void) {
    const esp_task_wdt_config_t config = {.timeout_ms = 500, .idle_core_mask = 1, .trigger_panic = true};
    CHECK_EQUAL(esp_task_wdt_reconfigure(&config), ESP_OK);
    for (int i = 0; i < 6; i++) {
        burn_cpu_ms(400);
        vTaskDelay(1);
    }
}

/* Half of what a watchdog allows on either side of a stop by the harness. */
static void mask_halfway(void) {
    portENTER_CRITICAL(&s_lock);
    burn_cpu_ms(120);
    say_halfway();
    burn_cpu_ms(120);
    portEXIT_CRITICAL(&s_lock);
}

static void hog_halfway(void) {
    const esp_task_wdt_config_t config = {.timeout_ms = 1500, .idle_core_mask = 1, .trigger_panic = true};
    CHECK_EQUAL(esp_task_wdt_reconfigure(&config), ESP_OK);
    burn_cpu_ms(600);
    say_halfway();
    burn_cpu_ms(600);
}

static void violate(const char *how) {
    if (strcmp(how, "heap") == 0) {
        take_too_much();
    } else if (strcmp(how, "critical") == 0) {
        mask_for_long();
    } else if (strcmp(how, "long_interrupt") == 0) {
        interrupt(stay);
    } else if (strcmp(how, "idle") == 0) {
        hog();
    } else if (strcmp(how, "busy") == 0) {
        be_busy();
    } else if (strcmp(how, "log") == 0) {
        interrupt(log_it);
    } else if (strcmp(how, "print") == 0) {
        interrupt(print_it);
    } else if (strcmp(how, "masked_print") == 0) {
        print_masked();
    } else if (strcmp(how, "malloc") == 0) {
        interrupt(allocate_it);
    } else if (strcmp(how, "float") == 0) {
        interrupt(compute_float);
    } else if (strcmp(how, "half_critical") == 0) {
        mask_halfway();
    } else if (strcmp(how, "half_idle") == 0) {
        hog_halfway();
    } else {
        _exit(3);
    }
    printf("survived\n");
}

/* ---- what it costs ---- */

void *__real_malloc(size_t size);
void __real_free(void *block);

enum { BATCHES = 201, PAIRS = 1000, BLOCK_BYTES = 256 };

static void allocate_counted(void) {
    void *volatile block = malloc(BLOCK_BYTES);
    free(block);
}

static void allocate_uncounted(void) {
    void *volatile block = __real_malloc(BLOCK_BYTES);
    __real_free(block);
}

static void enter_and_exit(void) {
    portENTER_CRITICAL(&s_lock);
    portEXIT_CRITICAL(&s_lock);
}

static void mask_and_unmask(void) {
    task_t *self = kernel_known_self();
    port_mask(self);
    port_unmask(self);
}

static double time_ns(void (*pair)(void)) {
    struct timespec from, until;
    clock_gettime(CLOCK_MONOTONIC, &from);
    for (int i = 0; i < PAIRS; i++) {
        pair();
    }
    clock_gettime(CLOCK_MONOTONIC, &until);
    return (double)((until.tv_sec - from.tv_sec) * INT64_C(1000000000) + until.tv_nsec - from.tv_nsec) /
           PAIRS;
}

static int compare(const void *a, const void *b) {
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

/* In turns, batch by batch, so that a machine that changes its speed changes both. */
static void print_cost(const char *what, void (*with)(void), const char *than, void (*other)(void)) {
    static double with_ns[BATCHES], other_ns[BATCHES];
    for (int i = 0; i < BATCHES; i++) {
        with_ns[i] = time_ns(with);
        other_ns[i] = time_ns(other);
    }
    qsort(with_ns, BATCHES, sizeof with_ns[0], compare);
    qsort(other_ns, BATCHES, sizeof other_ns[0], compare);
    printf("%s: %.1f ns, of which %s: %.1f ns (medians of %d batches)\n", what, with_ns[BATCHES / 2], than,
           other_ns[BATCHES / 2], BATCHES);
}

static void print_costs(void) {
    print_cost("malloc and free of 256 bytes", allocate_counted, "glibc's own", allocate_uncounted);
    print_cost("entering and leaving a critical section", enter_and_exit, "strict mode's marks",
               mask_and_unmask);
}

void app_main(void) {
    vTaskPrioritySet(NULL, 10);
    const char *how = getenv("VIOLATION");
    if (getenv("COST") != NULL) {
        print_costs();
        exit(0);
    }
    if (how != NULL) {
        violate(how);
        exit(0);
    }
    if (vboard()->strict_heap) {
        test_refused();
        test_counted();
    }
    test_woken();
    test_allowed();
    test_short_sections();
    exit(0);
}
