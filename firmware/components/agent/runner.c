/* SPDX-License-Identifier: Apache-2.0 */
#include "runner.h"

#include <stdatomic.h>

#include "cpu_load.h"
#include "freertos/queue.h"
#include "freertos/semphr.h"
#include "freertos/task.h"
#include "link.h"
#include "pack.h"
#include "port/port.h"
#include "provision.h"
#include "quiet.h"
#include "record.h"
#include "transfer.h"

typedef enum { STATE_IDLE, STATE_LINKING, STATE_RUNNING, STATE_HOLDING } state_t;

/* Hand-over from the console task to the run task. */
typedef struct {
    state_t state;
    bench_run_t run;    /* STATE_RUNNING */
    TickType_t timeout; /* STATE_LINKING */
    reply_t *reply;     /* STATE_LINKING */
} job_t;

static QueueHandle_t s_jobs;
static atomic_int s_state = STATE_IDLE;
static atomic_bool s_aborted;
static atomic_uint s_next_transfer = 1; /* stays until lines with it were sent: a run ends as what it began */

/* Guards s_held. Whoever sends lines of a job has it, so that they are sent by one task at a time. Taken
 * before the record lock. */
static SemaphoreHandle_t s_lock;
static SemaphoreHandle_t s_released;
static SemaphoreHandle_t s_settled; /* given where a job may have come to its end, or holds a transfer */
static const transfer_t *s_held;

static bench_run_t s_run; /* run task's own */
static bench_samples_t s_samples;

const char *runner_state_name(void) {
    static const char *const names[] = {"idle", "linking", "running", "holding"};
    return names[atomic_load(&s_state)];
}

/* Waits for lines that are being sent: the host may answer the last of them before their sender is idle. */
bool runner_is_idle(void) {
    xSemaphoreTake(s_lock, portMAX_DELAY);
    bool idle = atomic_load(&s_state) == STATE_IDLE;
    xSemaphoreGive(s_lock);
    return idle;
}

uint32_t runner_next_transfer(void) {
    return atomic_load(&s_next_transfer);
}

uint32_t runner_held_transfer(void) {
    xSemaphoreTake(s_lock, portMAX_DELAY);
    uint32_t id = s_held != NULL ? s_held->id : 0;
    xSemaphoreGive(s_lock);
    return id;
}

bool bench_aborted(const bench_run_t *run) {
    (void)run;
    return atomic_load(&s_aborted);
}

/* Forget the held transfer and wake the run task. Call it with the lock. */
static void release(void) {
    if (s_held->last) {
        samples_drop_arena(); /* before the state, so that who finds the agent idle finds the memory free */
    }
    atomic_store(&s_state, s_held->last ? STATE_IDLE : STATE_RUNNING);
    s_held = NULL;
    xSemaphoreGive(s_released);
}

/* Send the lines of a transfer, which takes its id for good. Call it with the lock. */
static void send_lines(const transfer_t *transfer) {
    atomic_fetch_add(&s_next_transfer, 1);
    transfer_send(transfer);
}

/* Send a transfer and wait until the console task released it. Returns false if the run was aborted before:
 * nothing is held then. */
static bool send_and_hold(const transfer_t *transfer) {
    xSemaphoreTake(s_lock, portMAX_DELAY);
    bool wanted = !atomic_load(&s_aborted);
    if (wanted) {
        s_held = transfer;
        atomic_store(&s_state, STATE_HOLDING);
        send_lines(transfer);
    }
    xSemaphoreGive(s_lock);
    if (wanted) {
        xSemaphoreGive(s_settled);
        xSemaphoreTake(s_released, portMAX_DELAY);
    }
    return wanted;
}

static transfer_t make_transfer(const char *status, bool last) {
    return (transfer_t){
        .id = atomic_load(&s_next_transfer),
        .run = &s_run,
        .samples = &s_samples,
        .status = status,
        .last = last,
    };
}

static esp_err_t send_burst(bench_samples_t *samples) {
    (void)samples;
    transfer_t transfer = make_transfer("ok", false);
    quiet_end();
    send_and_hold(&transfer);
    quiet_begin();
    return atomic_load(&s_aborted) ? ESP_ERR_INVALID_STATE : ESP_OK;
}

/* A run that was aborted is over: its lines are sent once, as the transfer that the host waits for, and
 * nothing is held. */
static void send_aborted(void) {
    samples_discard(&s_samples);
    transfer_t transfer = make_transfer("aborted", true);
    xSemaphoreTake(s_lock, portMAX_DELAY);
    send_lines(&transfer);
    samples_drop_arena();
    atomic_store(&s_state, STATE_IDLE);
    xSemaphoreGive(s_lock);
    xSemaphoreGive(s_settled);
}

static esp_err_t measure(void) {
    const bench_t *bench = s_run.entry->bench;
    samples_reset(&s_samples, bench->column_count, send_burst);
    esp_err_t no_arena = samples_take_arena(&s_samples);
    if (no_arena != ESP_OK) {
        return no_arena;
    }
    quiet_begin();
    esp_err_t err = bench->run(&s_run, &s_samples);
    cpu_load_end();
    quiet_end();
    int fault = atomic_load(&s_samples.fault);
    return err != ESP_OK ? err : fault;
}

static void run_bench(void) {
    esp_err_t err = measure();
    if (err != ESP_OK) {
        samples_discard(&s_samples);
    }
    transfer_t transfer = make_transfer(err == ESP_OK ? "ok" : esp_err_to_name(err), true);
    transfer.failed = err != ESP_OK;
    if (!send_and_hold(&transfer)) {
        send_aborted();
    }
}

static void write_link(const char *key, const char *value, void *context) {
    wire_line_text(context, key, value);
}

static void bring_link_up(TickType_t timeout, reply_t *reply) {
    esp_err_t err = link_up(provision(), timeout);
    xSemaphoreTake(s_lock, portMAX_DELAY);
    wire_line_t *line = err == ESP_OK ? reply_ok(reply) : reply_error(reply, "link-failed");
    if (err != ESP_OK) {
        wire_line_text(line, "error", esp_err_to_name(err));
    }
    link_environment(write_link, line);
    reply_end(reply, line);
    atomic_store(&s_state, STATE_IDLE); /* not before: a next job would take the reply's place */
    xSemaphoreGive(s_lock);
    xSemaphoreGive(s_settled);
}

static void run_task(void *unused) {
    (void)unused;
    static job_t job;
    for (;;) {
        xQueueReceive(s_jobs, &job, portMAX_DELAY);
        if (job.state == STATE_LINKING) {
            bring_link_up(job.timeout, job.reply);
        } else {
            s_run = job.run;
            run_bench();
        }
    }
}

static void submit(const job_t *job) {
    atomic_store(&s_aborted, false);
    atomic_store(&s_state, (int)job->state);
    xQueueSend(s_jobs, job, portMAX_DELAY);
}

void runner_run(const bench_run_t *run) {
    static job_t job;
    job = (job_t){.state = STATE_RUNNING, .run = *run};
    submit(&job);
}

void runner_link_up(TickType_t timeout, reply_t *reply) {
    static job_t job;
    job = (job_t){.state = STATE_LINKING, .timeout = timeout, .reply = reply};
    submit(&job);
}

bool runner_acknowledge(uint32_t transfer) {
    xSemaphoreTake(s_lock, portMAX_DELAY);
    bool held = s_held != NULL && s_held->id == transfer;
    if (held) {
        release();
    }
    xSemaphoreGive(s_lock);
    return held;
}

void runner_abort(void) {
    atomic_store(&s_aborted, true);
    xSemaphoreTake(s_lock, portMAX_DELAY);
    if (s_held != NULL) {
        release();
    }
    xSemaphoreGive(s_lock);
}

uint32_t runner_await(bool *failed) {
    for (;;) {
        xSemaphoreTake(s_lock, portMAX_DELAY);
        uint32_t id = s_held != NULL ? s_held->id : 0;
        *failed = s_held != NULL && s_held->failed;
        bool idle = atomic_load(&s_state) == STATE_IDLE;
        xSemaphoreGive(s_lock);
        if (idle || id != 0) {
            return id;
        }
        xSemaphoreTake(s_settled, portMAX_DELAY);
    }
}

runner_resend_t runner_resend(uint32_t transfer, uint64_t blocks, void (*accepted)(void)) {
    runner_resend_t result = RUNNER_NO_TRANSFER;
    xSemaphoreTake(s_lock, portMAX_DELAY);
    if (s_held != NULL && s_held->id == transfer) {
        size_t count = transfer_block_count(s_held);
        bool exist = count >= PACK_MAX_BLOCKS || blocks >> count == 0;
        result = exist ? RUNNER_SENT : RUNNER_NO_BLOCK;
    }
    if (result == RUNNER_SENT) {
        accepted();
        if (blocks != 0) {
            transfer_send_blocks(s_held, blocks);
        } else {
            transfer_send_frame(s_held);
        }
    }
    xSemaphoreGive(s_lock);
    return result;
}

void runner_start(void) {
    s_jobs = xQueueCreate(1, sizeof(job_t));
    s_lock = xSemaphoreCreateMutex();
    s_released = xSemaphoreCreateBinary();
    s_settled = xSemaphoreCreateBinary();
    configASSERT(s_jobs != NULL && s_lock != NULL && s_released != NULL && s_settled != NULL);
    BaseType_t created = xTaskCreatePinnedToCore(run_task, "agent_run", AGENT_RUN_STACK_BYTES, NULL,
                                                 AGENT_RUN_PRIORITY, NULL, tskNO_AFFINITY);
    configASSERT(created == pdPASS);
    (void)created;
}
