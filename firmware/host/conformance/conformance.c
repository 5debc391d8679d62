/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NOTES = 16, PATIENCE_TICKS = 3000 };

static atomic_uint s_noted;
static char s_notes[NOTES + 1];
static SemaphoreHandle_t s_ended;
static unsigned s_started;

TaskHandle_t start_task(TaskFunction_t code, void *argument, UBaseType_t priority, BaseType_t core) {
    TaskHandle_t task = NULL;
    s_started++;
    if (xTaskCreatePinnedToCore(code, "rule", STACK_BYTES, argument, priority, &task, core) != pdPASS) {
        abort();
    }
    return task;
}

void end_task(void) {
    xSemaphoreGive(s_ended);
    vTaskDelete(NULL);
}

bool await_tasks(void) {
    bool all = true;
    for (; s_started > 0; s_started--) {
        all = xSemaphoreTake(s_ended, PATIENCE_TICKS) == pdTRUE && all;
    }
    return all;
}

void note(char letter) {
    unsigned at = atomic_fetch_add(&s_noted, 1);
    if (at < NOTES) {
        s_notes[at] = letter;
    }
}

const char *noted(void) {
    return s_notes;
}

bool noted_is(const char *wanted) {
    return strcmp(s_notes, wanted) == 0;
}

void compute_ticks(TickType_t ticks) {
    TickType_t begin = xTaskGetTickCount();
    while (xTaskGetTickCount() - begin < ticks) {
    }
}

static bool check(const rule_t *rule) {
    bool holds = false;
    for (int attempt = 0; !holds && (attempt == 0 || attempt < rule->attempts); attempt++) {
        memset(s_notes, 0, sizeof(s_notes));
        atomic_store(&s_noted, 0);
        holds = rule->holds();
    }
    return holds;
}

/* A rule that is not promised is looked at all the same: whoever reads the table sees what came of it. */
static bool report(const rule_t *rule) {
    if (rule->cores > portNUM_PROCESSORS) {
        printf("rule %-28s needs-two-cores  %s\n", rule->name, rule->says);
        return true;
    }
    bool holds = check(rule);
    const char *excuse = platform_excuse(rule->name);
    const char *verdict = holds ? "holds" : excuse != NULL ? "not-promised" : "BROKEN";
    printf("rule %-28s %-16s %s%s%s\n", rule->name, verdict, rule->says,
           holds || excuse == NULL ? "" : "; here: ", holds || excuse == NULL ? "" : excuse);
    if (!holds && excuse == NULL) {
        printf("     order seen: \"%s\"\n", noted());
    }
    return holds || excuse != NULL;
}

static bool report_all(const rule_t *rules, size_t count) {
    bool kept = true;
    for (size_t i = 0; i < count; i++) {
        kept = report(&rules[i]) && kept;
        fflush(stdout);
    }
    return kept;
}

void app_main(void) {
    vTaskPrioritySet(NULL, CHECK_PRIORITY);
    s_ended = xSemaphoreCreateCounting(64, 0);
    bool kept = report_all(rules_of_tasks, rules_of_tasks_count);
    kept = report_all(rules_of_cores, rules_of_cores_count) && kept;
    kept = report_all(rules_of_waiting, rules_of_waiting_count) && kept;
    kept = report_all(rules_of_time, rules_of_time_count) && kept;
    printf("%s\n", kept ? "all rules kept" : "RULES BROKEN");
    fflush(stdout);
    exit(kept ? EXIT_SUCCESS : EXIT_FAILURE);
}
