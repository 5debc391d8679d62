/* SPDX-License-Identifier: Apache-2.0 */
#include "transfer.h"

#include "environment.h"
#include "identity.h"
#include "pack.h"
#include "record.h"

static void write_columns(wire_line_t *line, const bench_t *bench) {
    wire_line_key(line, "columns");
    for (size_t i = 0; i < bench->column_count; i++) {
        wire_line_escaped(line, i > 0 ? "," : "");
        wire_line_escaped(line, bench->columns[i]);
    }
}

static void send_begin(const transfer_t *transfer, const pack_summary_t *summary) {
    const bench_entry_t *entry = transfer->run->entry;
    const bench_samples_t *samples = transfer->samples;
    wire_line_t *line = record_begin('B');
    wire_line_number(line, transfer->id);
    wire_line_text(line, "bench", entry->bench->name);
    wire_line_key(line, "case");
    run_write_case(line, transfer->run);
    write_columns(line, entry->bench);
    wire_line_int(line, "rows", (int64_t)samples->rows);
    wire_line_int(line, "warmup_rows", (int64_t)samples->warmup_rows);
    wire_line_int(line, "blocks", (int64_t)summary->blocks);
    wire_line_int(line, "burst", samples->burst);
    wire_line_text(line, "clock", entry->bench->clock != NULL ? entry->bench->clock : "esp_timer");
    wire_line_text(line, "firmware_sha256", identity()->firmware_sha256);
    wire_line_text(line, "ruler_hash", entry->ruler_hash);
    record_end(line);
}

static void send_block(void *context, size_t block, const uint8_t *bytes, size_t length) {
    const transfer_t *transfer = context;
    wire_line_t *line = record_begin('D');
    wire_line_number(line, transfer->id);
    wire_line_number(line, (uint32_t)block);
    wire_line_base64(line, bytes, length);
    record_end(line);
}

static void send_end(const transfer_t *transfer, const pack_summary_t *summary) {
    wire_line_t *line = record_begin('E');
    wire_line_number(line, transfer->id);
    wire_line_int(line, "rows", (int64_t)transfer->samples->rows);
    wire_line_int(line, "blocks", (int64_t)summary->blocks);
    wire_line_crc(line, "crc32", summary->crc32);
    wire_line_text(line, "status", transfer->status);
    wire_line_int(line, "last", transfer->last);
    if (transfer->failed) {
        wire_line_text(line, "owner", samples_owner_name(transfer->samples->owner));
        wire_line_text(line, "error", transfer->samples->error);
    }
    wire_line_word(line, ";");
    environment_write(line);
    if (transfer->samples->environment_length > 0) {
        wire_line_word(line, transfer->samples->environment + 1); /* it starts with the blank */
    }
    record_end(line);
}

static pack_summary_t measure(const transfer_t *transfer) {
    return pack_blocks(transfer->samples, 0, NULL, NULL);
}

size_t transfer_block_count(const transfer_t *transfer) {
    return measure(transfer).blocks;
}

void transfer_send_blocks(const transfer_t *transfer, uint64_t wanted) {
    pack_blocks(transfer->samples, wanted, send_block, (void *)transfer);
}

void transfer_send_frame(const transfer_t *transfer) {
    pack_summary_t summary = measure(transfer);
    send_begin(transfer, &summary);
    send_end(transfer, &summary);
}

void transfer_send(const transfer_t *transfer) {
    pack_summary_t summary = measure(transfer);
    send_begin(transfer, &summary);
    transfer_send_blocks(transfer, UINT64_MAX);
    send_end(transfer, &summary);
}
