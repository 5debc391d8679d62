/* SPDX-License-Identifier: Apache-2.0 */
/* throughput: what the network carries between this board and an iperf 2 (components/iperf).
 *
 * A row is one full interval of the board's timer; the last, partial one is in the environment. Where the
 * board receives, the columns are its own; where it sends, it fills in interval_us and sent_bytes alone, and
 * the host's peer puts the receiver's rows in their place.
 *
 *   interval_us                             the interval's length
 *   received_bytes, received_bps            the payload of TCP or UDP; bits per second end at 4,294,967,295
 *   expected_count, lost_count,
 *   out_of_order_count                      datagrams (UDP)
 *   jitter_us                               RFC 3550, smoothed, at the interval's end (UDP)
 *   transit_difference_mean_us, _max_us     |D(i-1,i)| of RFC 3550 (UDP)
 *   sent_bytes                              what the stack took; 0 when receiving
 */
#include "agent/bench.h"
#include "iperf/iperf.h"

enum {
    COLUMN_INTERVAL,
    COLUMN_RECEIVED,
    COLUMN_RECEIVED_BPS,
    COLUMN_EXPECTED,
    COLUMN_LOST,
    COLUMN_OUT_OF_ORDER,
    COLUMN_JITTER,
    COLUMN_DIFFERENCE_MEAN,
    COLUMN_DIFFERENCE_MAX,
    COLUMN_SENT
};

enum {
    LATE_MAX_MS = 30000, /* room for intervals of a peer that ends later than asked for */
    HEADER_AMOUNT_MAX = INT32_MAX,
};

/* ---- parameters ---- */

static uint32_t param(const bench_run_t *run, const char *key) {
    return (uint32_t)bench_param_int(run, key);
}

static iperf_settings_t read_settings(const bench_run_t *run) {
    bool udp = bench_param_int(run, "protocol") == IPERF_UDP;
    uint32_t length_bytes = param(run, "length_bytes"), rate_kbps = param(run, "rate_kbps");
    return (iperf_settings_t){
        .protocol = udp ? IPERF_UDP : IPERF_TCP,
        .server = bench_param_int(run, "role") != 0,
        .reverse = bench_param_int(run, "reverse") != 0,
        .rate_bps = rate_kbps > 0 ? (uint64_t)rate_kbps * 1000 : (udp ? IPERF_UDP_RATE_BPS : 0),
        .length_bytes =
            length_bytes > 0 ? length_bytes : (udp ? IPERF_UDP_LENGTH_BYTES : IPERF_TCP_LENGTH_BYTES),
        .amount_bytes = (uint64_t)bench_param_int(run, "amount_bytes"),
        .duration_ms = param(run, "duration_s") * 1000,
        .omit_ms = param(run, "omit_s") * 1000,
        .interval_us = param(run, "interval_ms") * 1000,
        .window_bytes = param(run, "window_bytes"),
        .mss_bytes = param(run, "mss_bytes"),
        .nodelay = bench_param_int(run, "nodelay") != 0,
        .timeout_ms = param(run, "timeout_ms"),
    };
}

/* Why these cannot be run, as a sentence; NULL where they can. */
static const char *conflict(const iperf_settings_t *settings, size_t capacity) {
    if (settings->protocol == IPERF_UDP && settings->length_bytes < IPERF_UDP_LENGTH_MIN_BYTES) {
        return "length_bytes of UDP is at least 16, iperf's own header";
    }
    if (settings->reverse && settings->amount_bytes > HEADER_AMOUNT_MAX) {
        return "with reverse=1 amount_bytes is at most 2147483647: iperf's header has 31 bits for it";
    }
    if (settings->amount_bytes == 0 && settings->omit_ms >= settings->duration_ms) {
        return "omit_s is not shorter than duration_s: nothing would be left to measure";
    }
    if (settings->amount_bytes == 0 &&
        (uint64_t)settings->duration_ms * 1000 / settings->interval_us > capacity) {
        return "duration_s has more intervals than the sample buffer takes; choose a longer interval_ms";
    }
    return NULL;
}

/* Room for the intervals that are planned, and for those of a peer that ends late. */
static size_t row_capacity(const iperf_settings_t *settings, size_t capacity) {
    uint64_t late_ms = settings->timeout_ms < LATE_MAX_MS ? settings->timeout_ms : LATE_MAX_MS;
    uint64_t rows = ((uint64_t)settings->duration_ms + late_ms) * 1000 / settings->interval_us + 1;
    return settings->amount_bytes > 0 || rows > capacity ? capacity : (size_t)rows;
}

/* ---- results ---- */

static uint32_t bits_per_second(uint32_t bytes, uint32_t interval_us) {
    uint64_t bps = (uint64_t)bytes * 8 * 1000000 / interval_us;
    return bps > UINT32_MAX ? UINT32_MAX : (uint32_t)bps;
}

static void store_received(bench_samples_t *samples, size_t index, const iperf_row_t *row,
                           uint32_t interval_us) {
    bench_samples_set(samples, index, COLUMN_RECEIVED, row->bytes);
    bench_samples_set(samples, index, COLUMN_RECEIVED_BPS, bits_per_second(row->bytes, interval_us));
    bench_samples_set(samples, index, COLUMN_EXPECTED, row->expected_count);
    bench_samples_set(samples, index, COLUMN_LOST, row->lost_count);
    bench_samples_set(samples, index, COLUMN_OUT_OF_ORDER, row->out_of_order_count);
    bench_samples_set(samples, index, COLUMN_JITTER, row->jitter_us);
    bench_samples_set(samples, index, COLUMN_DIFFERENCE_MEAN, row->transit_difference_mean_us);
    bench_samples_set(samples, index, COLUMN_DIFFERENCE_MAX, row->transit_difference_max_us);
}

static esp_err_t store_rows(bench_samples_t *samples, const iperf_test_t *test,
                            const iperf_settings_t *settings) {
    const uint32_t interval_us = iperf_outcome(test)->interval_us;
    size_t rows = iperf_outcome(test)->row_count, omitted = settings->omit_ms * 1000 / interval_us;
    bool sends = settings->server == settings->reverse;
    if (omitted >= rows) {
        return bench_fail(samples, BENCH_OWNER_CONFIGURATION, ESP_ERR_INVALID_SIZE,
                          "the test had %u full intervals, of which omit_s leaves none; let it last longer",
                          (unsigned)rows);
    }
    esp_err_t err = bench_samples_begin(samples, rows, omitted);
    for (size_t i = 0; err == ESP_OK && i < rows; i++) {
        const iperf_row_t *row = iperf_row(test, i);
        bench_samples_set(samples, i, COLUMN_INTERVAL, interval_us);
        if (sends) {
            bench_samples_set(samples, i, COLUMN_SENT, row->bytes);
        } else {
            store_received(samples, i, row, interval_us);
        }
    }
    return err;
}

static void report_end(bench_samples_t *samples, const iperf_report_t *report) {
    bench_environment_int(samples, "report_lost_count", report->lost_count);
    bench_environment_int(samples, "report_datagrams_count", report->datagrams_count);
    bench_environment_int(samples, "report_jitter_us", report->jitter_us);
    bench_environment_int(samples, "report_out_of_order_count", report->out_of_order_count);
    bench_environment_int(samples, "report_received_bytes", report->received_bytes);
}

static void report_udp(bench_samples_t *samples, const iperf_outcome_t *outcome, bool sends) {
    if (outcome->has_report) {
        report_end(samples, &outcome->report);
    }
    if (sends) {
        bench_environment_int(samples, "refused_count", outcome->refused_count);
        return;
    }
    bench_environment_int(samples, "duplicate_count", outcome->duplicate_count);
    bench_environment_int(samples, "ignored_count", outcome->ignored_count);
    bench_environment_int(samples, "timestamps", outcome->has_timestamps);
    bench_environment_int(samples, "end_seen", outcome->ended);
}

static void report(bench_samples_t *samples, const iperf_outcome_t *outcome,
                   const iperf_settings_t *settings) {
    bool sends = settings->server == settings->reverse;
    bench_environment_text(samples, "receiver", sends ? "host" : "board");
    bench_environment_int(samples, "sent_bytes", outcome->sent_bytes);
    bench_environment_int(samples, "received_bytes", outcome->received_bytes);
    bench_environment_int(samples, "whole_us", outcome->whole_us);
    bench_environment_int(samples, "last_partial_bytes", outcome->last_partial_bytes);
    bench_environment_int(samples, "last_partial_us", outcome->last_partial_us);
    bench_environment_int(samples, "steady_bytes", outcome->steady_bytes);
    bench_environment_int(samples, "window_bytes", outcome->window_bytes);
    if (outcome->peer_version[0] != '\0') {
        bench_environment_text(samples, "peer_version", outcome->peer_version);
    }
    if (sends) {
        bench_environment_int(samples, "sent_us", outcome->sent_us);
        bench_environment_int(samples, "late_max_us", outcome->late_max_us);
        bench_environment_int(samples, "late_end_us", outcome->late_end_us);
    }
    if (settings->protocol == IPERF_UDP) {
        report_udp(samples, outcome, sends);
    } else {
        bench_environment_int(samples, "mss_bytes", outcome->mss_bytes);
        bench_environment_int(samples, "nodelay", outcome->nodelay);
    }
}

/* ---- the run ---- */

static esp_err_t run(const bench_run_t *bench_run, bench_samples_t *samples) {
    iperf_settings_t settings = read_settings(bench_run);
    size_t capacity = bench_samples_capacity(samples);
    const char *problem = conflict(&settings, capacity);
    if (problem != NULL) {
        return bench_fail(samples, BENCH_OWNER_CONFIGURATION, ESP_ERR_INVALID_ARG, "%s", problem);
    }
    settings.row_capacity = row_capacity(&settings, capacity);
    iperf_test_t *test = iperf_create(bench_run, samples, &settings);
    if (test == NULL) {
        return bench_fail(samples, BENCH_OWNER_FIRMWARE, ESP_ERR_NO_MEM,
                          "no memory for %u bytes of data and %u intervals", (unsigned)settings.length_bytes,
                          (unsigned)settings.row_capacity);
    }
    esp_err_t err = iperf_run(test);
    err = err != ESP_OK ? err : store_rows(samples, test, &settings);
    if (err == ESP_OK) {
        report(samples, iperf_outcome(test), &settings);
    }
    iperf_delete(test);
    return err;
}

static const char *const PROTOCOLS[] = {"tcp", "udp", NULL};
static const char *const ROLES[] = {"client", "server", NULL};

static const bench_parameter_t PARAMETERS[] = {
    {.key = "protocol", .type = BENCH_CHOICE, .choices = PROTOCOLS},
    {.key = "role", .type = BENCH_CHOICE, .choices = ROLES},
    {.key = "reverse", .type = BENCH_INT, .def = 0, .min = 0, .max = 1},
    {.key = "rate_kbps", .type = BENCH_INT, .def = 0, .min = 0, .max = 1000000},
    {.key = "length_bytes", .type = BENCH_INT, .def = 0, .min = 0, .max = IPERF_LENGTH_MAX_BYTES},
    {.key = "amount_bytes", .type = BENCH_INT, .def = 0, .min = 0, .max = INT64_C(1) << 40},
    {.key = "duration_s", .type = BENCH_INT, .def = 10, .min = 1, .max = 3600},
    {.key = "omit_s", .type = BENCH_INT, .def = 2, .min = 0, .max = 60},
    {.key = "interval_ms", .type = BENCH_INT, .def = 100, .min = 10, .max = 10000},
    {.key = "window_bytes", .type = BENCH_INT, .def = 0, .min = 0, .max = 1048576},
    {.key = "peer_window_bytes", .type = BENCH_INT, .def = 0, .min = 0, .max = 16777216},
    {.key = "mss_bytes", .type = BENCH_INT, .def = 0, .min = 0, .max = 1460},
    {.key = "peer_mss_bytes", .type = BENCH_INT, .def = 0, .min = 0, .max = 1460},
    {.key = "nodelay", .type = BENCH_INT, .def = 0, .min = 0, .max = 1},
    {.key = "turn", .type = BENCH_INT, .def = 0, .min = 0, .max = 99},
    {.key = "timeout_ms", .type = BENCH_INT, .def = 10000, .min = 100, .max = 60000},
};

static const char *const COLUMNS[] = {"interval_us",
                                      "received_bytes",
                                      "received_bps",
                                      "expected_count",
                                      "lost_count",
                                      "out_of_order_count",
                                      "jitter_us",
                                      "transit_difference_mean_us",
                                      "transit_difference_max_us",
                                      "sent_bytes"};

const bench_t bench_throughput = {
    .name = "throughput",
    .parameters = PARAMETERS,
    .parameter_count = sizeof(PARAMETERS) / sizeof(PARAMETERS[0]),
    .columns = COLUMNS,
    .column_count = sizeof(COLUMNS) / sizeof(COLUMNS[0]),
    .run = run,
};
