/* SPDX-License-Identifier: Apache-2.0 */
/* samples.c, pack.c, transfer.c: what a bench put in is what the lines carry; the lines of the worked example
 * stand in docs/reference/console-protocol.md byte for byte.
 *
 * Records, identity and environment are the test's own, so that the lines are the same every time. */
#include "environment.h"
#include "expect.h"
#include "identity.h"
#include "pack.h"
#include "record.h"
#include "transfer.h"

static char s_sent[256 * 1024]; /* all lines since forget_lines() */
static size_t s_sent_length;
static uint32_t s_number;
static char s_buffer[WIRE_LINE_SIZE];
static wire_line_t s_line;

wire_line_t *record_begin(char kind) {
    wire_line_start(&s_line, s_buffer, sizeof(s_buffer), ++s_number, kind);
    return &s_line;
}

void record_end(wire_line_t *line) {
    EXPECT(wire_line_finish(line));
    EXPECT(s_sent_length + line->length < sizeof(s_sent));
    memcpy(s_sent + s_sent_length, line->text, line->length + 1);
    s_sent_length += line->length;
}

const identity_t *identity(void) {
    static const identity_t example = {
        .firmware_sha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    };
    return &example;
}

void environment_write(wire_line_t *line) {
    wire_line_int(line, "heap_free_bytes", 183420);
}

static const char *const MODES[] = {"slow", "fast", NULL};
static const bench_parameter_t PARAMETERS[] = {
    {.key = "count", .type = BENCH_INT, .def = 3, .min = 1, .max = 100},
    {.key = "mode", .type = BENCH_CHOICE, .def = 0, .choices = MODES},
};
static const char *const COLUMNS[] = {"planned_us", "done_us"};
static const bench_t EXAMPLE = {
    .name = "example",
    .parameters = PARAMETERS,
    .parameter_count = 2,
    .columns = COLUMNS,
    .column_count = 2,
};
const bench_entry_t bench_table[] = {
    {&EXAMPLE, "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"},
};
const size_t bench_table_length = 1;

static bench_samples_t s_samples;
static bench_run_t s_run;
static transfer_t s_transfer;

static esp_err_t acknowledge(bench_samples_t *samples) {
    (void)samples;
    return ESP_OK;
}

static void start(size_t columns) {
    samples_reset(&s_samples, columns, acknowledge);
    run_init(&s_run, run_find_bench("example"));
    s_transfer = (transfer_t){.id = 3, .run = &s_run, .samples = &s_samples, .status = "ok", .last = true};
    s_sent_length = 0;
    s_sent[0] = '\0';
}

static char *read_docs(void) {
    FILE *file = fopen(HIL_PROTOCOL_DOC, "r");
    EXPECT(file != NULL);
    static char text[64 * 1024];
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    fclose(file);
    return text;
}

static void fill_example(void) {
    static const uint32_t planned_us[] = {1000, 2000, 3010};
    static const uint32_t done_us[] = {1840, 2790, 0};
    EXPECT(bench_samples_begin(&s_samples, 3, 1) == ESP_OK);
    for (size_t row = 0; row < 3; row++) {
        bench_samples_set(&s_samples, row, 0, planned_us[row]);
        bench_samples_set(&s_samples, row, 1, done_us[row]);
    }
}

static void the_worked_example_is_what_is_sent(void) {
    bool valid = false;
    start(2);
    s_number = 11;
    fill_example();
    EXPECT(run_set(&s_run, "mode", "fast", &valid) != NULL && valid);
    bench_environment_int(&s_samples, "t0_us", 5000000);
    bench_environment_text(&s_samples, "note", "two words");
    transfer_send(&s_transfer);
    if (strstr(read_docs(), s_sent) == NULL) {
        fprintf(stderr, "docs/reference/console-protocol.md lacks these lines:\n%s", s_sent);
        exit(EXIT_FAILURE);
    }
}

static void the_worked_command_is_understood(void) {
    const char *at = strstr(read_docs(), "#7a3f-2 run example");
    EXPECT(at != NULL);
    char line[WIRE_COMMAND_SIZE] = {0};
    memcpy(line, at, strcspn(at, "\n"));
    wire_command_t command;
    EXPECT(wire_command_parse(line, &command) == WIRE_COMMAND_OK);
    EXPECT_TEXT(command.tag, "7a3f-2");
    EXPECT_TEXT(command.text, "run example count=3 mode=fast");
}

typedef struct {
    uint8_t bytes[PACK_MAX_BLOCKS * WIRE_BLOCK_BYTES];
    size_t length;
    size_t calls;
} packed_t;

static void keep(void *context, size_t block, const uint8_t *bytes, size_t length) {
    packed_t *packed = context;
    EXPECT(length <= WIRE_BLOCK_BYTES);
    memcpy(packed->bytes + block * WIRE_BLOCK_BYTES, bytes, length);
    packed->length += length;
    packed->calls++;
}

/* The longest differences there are, in a full buffer: still at most PACK_MAX_BLOCKS blocks. */
static void a_full_buffer_of_the_worst_values_fits(void) {
    static packed_t packed;
    start(1);
    size_t rows = bench_samples_capacity(&s_samples);
    EXPECT(rows == BENCH_ARENA_BYTES / 4);
    EXPECT(bench_samples_begin(&s_samples, rows, 0) == ESP_OK);
    for (size_t row = 0; row < rows; row++) {
        bench_samples_set(&s_samples, row, 0, row % 2 == 0 ? UINT32_MAX : 0);
    }
    pack_summary_t summary = pack_blocks(&s_samples, UINT64_MAX, keep, &packed);
    EXPECT(summary.bytes == rows * 5 && packed.length == summary.bytes);
    EXPECT(summary.blocks == packed.calls && summary.blocks <= PACK_MAX_BLOCKS);
    EXPECT(summary.crc32 == wire_crc32(0, packed.bytes, packed.length));
}

static void named_blocks_only_are_sent_again(void) {
    start(1);
    EXPECT(bench_samples_begin(&s_samples, 5000, 0) == ESP_OK);
    EXPECT(transfer_block_count(&s_transfer) == 5); /* zeroes take a byte each */
    transfer_send_blocks(&s_transfer, 1ULL << 4 | 1ULL << 1);
    char *first = strstr(s_sent, " D 3 1 ");
    EXPECT(first != NULL && strstr(first, " D 3 4 ") != NULL);
    EXPECT(strstr(s_sent, " D 3 0 ") == NULL && strstr(s_sent, " D 3 2 ") == NULL);
}

static void a_run_without_rows_has_no_blocks(void) {
    start(2);
    transfer_send(&s_transfer);
    EXPECT(strstr(s_sent, " rows=0 ") != NULL && strstr(s_sent, " blocks=0 crc32=00000000 ") != NULL);
    EXPECT(strstr(s_sent, " D ") == NULL);
}

static void the_buffer_refuses_what_it_cannot_hold(void) {
    start(2);
    EXPECT(bench_samples_begin(&s_samples, bench_samples_capacity(&s_samples) + 1, 0) == ESP_ERR_NO_MEM);
    EXPECT_TEXT(s_samples.error, "6145 rows of 2 columns take 49160 bytes, and the sample buffer has 49152 "
                                 "(CONFIG_HIL_ARENA_BYTES)");
    EXPECT(bench_samples_begin(&s_samples, 2, 3) == ESP_ERR_INVALID_ARG);
    EXPECT(bench_samples_begin(&s_samples, 2, 2) == ESP_OK);
    EXPECT(atomic_load(&s_samples.fault) == ESP_OK);
    bench_samples_set(&s_samples, 2, 0, 1);
    EXPECT(atomic_load(&s_samples.fault) == ESP_ERR_INVALID_SIZE);
}

static void a_burst_empties_the_buffer(void) {
    start(2);
    EXPECT(bench_samples_begin(&s_samples, 2, 1) == ESP_OK);
    bench_samples_set(&s_samples, 1, 1, 9);
    bench_environment_int(&s_samples, "t0_us", 1);
    EXPECT(bench_samples_burst(&s_samples) == ESP_OK);
    EXPECT(s_samples.burst == 2 && s_samples.rows == 0 && s_samples.environment_length == 0);
    EXPECT(bench_samples_begin(&s_samples, 2, 1) == ESP_ERR_INVALID_ARG); /* warm-up belongs to the first */
    EXPECT(bench_samples_begin(&s_samples, 2, 0) == ESP_OK);
    EXPECT(samples_get(&s_samples, 1, 1) == 0);
}

static void too_much_environment_is_a_fault(void) {
    start(2);
    for (int i = 0; i < 100; i++) {
        bench_environment_int(&s_samples, "a_key_of_thirty_characters_len", INT64_MAX);
    }
    EXPECT(atomic_load(&s_samples.fault) == ESP_ERR_NO_MEM);
    EXPECT(s_samples.environment_length < SAMPLES_ENVIRONMENT_SIZE);
    EXPECT(s_samples.environment[s_samples.environment_length] == '\0');
}

/* The sentence is quoted whole; of a run that is all right nothing is said. */
static void a_failure_says_whose_it_is_and_why(void) {
    start(2);
    EXPECT(bench_fail(&s_samples, BENCH_OWNER_RIG, ESP_FAIL, "no %s at %d", "broker", 7) == ESP_FAIL);
    transfer_send(&s_transfer);
    EXPECT(strstr(s_sent, "owner=") == NULL && strstr(s_sent, "error=") == NULL);
    s_transfer.failed = true;
    transfer_send(&s_transfer);
    EXPECT(strstr(s_sent, " last=1 owner=rig error=no%20broker%20at%207 ; heap_free_bytes=") != NULL);
}

/* A sentence that is too long is cut; a run that says nothing is the firmware's. */
static void a_failure_is_told_in_bounds(void) {
    char text[2 * SAMPLES_ERROR_SIZE] = {0};
    start(2);
    s_transfer.failed = true;
    transfer_send(&s_transfer);
    EXPECT(strstr(s_sent, " last=1 owner=firmware error= ;") != NULL);
    memset(text, 'x', sizeof(text) - 1);
    bench_fail(&s_samples, BENCH_OWNER_CONFIGURATION, ESP_FAIL, "%s", text);
    EXPECT(strlen(s_samples.error) == SAMPLES_ERROR_SIZE - 1);
}

int main(void) {
    the_worked_example_is_what_is_sent();
    the_worked_command_is_understood();
    a_full_buffer_of_the_worst_values_fits();
    named_blocks_only_are_sent_again();
    a_run_without_rows_has_no_blocks();
    the_buffer_refuses_what_it_cannot_hold();
    a_burst_empties_the_buffer();
    too_much_environment_is_a_fault();
    a_failure_says_whose_it_is_and_why();
    a_failure_is_told_in_bounds();
    return 0;
}
