/* SPDX-License-Identifier: Apache-2.0 */
/* components/iperf's datagrams, acknowledgement and report, byte by byte as iperf 2.1.8 (Debian 12) wrote
 * them on a loopback. */
#include "hex.h"
#include "messages.h"

/* ---- datagrams ---- */

static void a_datagram_is_as_iperf_writes_it(void) {
    uint8_t bytes[IPERF_DATAGRAM_HEADER_BYTES];
    const int64_t sent_us = INT64_C(0x6b01cc00) * 1000000 + 0x35b7a;
    iperf_pack_datagram(bytes, 1, sent_us);
    EXPECT(equals_hex(bytes, sizeof(bytes), "000000016b01cc0000035b7a00000000"));
    EXPECT(iperf_unpack_datagram(bytes, true).id == 1 &&
           iperf_unpack_datagram(bytes, true).sent_us == sent_us);
    iperf_pack_datagram(bytes, -4, sent_us);
    EXPECT(equals_hex(bytes, sizeof(bytes), "fffffffc6b01cc0000035b7affffffff"));
    EXPECT(iperf_unpack_datagram(bytes, true).id == -4 && iperf_unpack_datagram(bytes, false).id == -4);
    iperf_pack_datagram(bytes, INT64_C(5000000000), sent_us);
    EXPECT(iperf_unpack_datagram(bytes, true).id == INT64_C(5000000000));
}

static void a_sender_without_a_clock_is_known(void) {
    uint8_t bytes[IPERF_DATAGRAM_HEADER_BYTES] = {0, 0, 0, 9};
    EXPECT(iperf_unpack_datagram(bytes, false).sent_us == -1);
    memset(bytes + 4, '7', 12); /* a payload where the time belongs */
    EXPECT(iperf_unpack_datagram(bytes, false).sent_us == -1);
    EXPECT(iperf_unpack_datagram(bytes, false).id == 9);
}

/* ---- acknowledgement and report ---- */

static void an_acknowledgement_is_as_iperf_writes_it(void) {
    uint8_t bytes[IPERF_ACK_BYTES];
    char version[IPERF_VERSION_SIZE] = "";
    iperf_pack_ack(bytes);
    EXPECT(equals_hex(bytes, sizeof(bytes), "000000020000001c0000000000020001000800030000000000000000"));
    EXPECT(iperf_unpack_ack(bytes, sizeof(bytes), version));
    EXPECT_TEXT(version, "2.1.8");
    EXPECT(!iperf_unpack_ack(bytes, sizeof(bytes) - 1, version));
    bytes[3] = 3;
    EXPECT(!iperf_unpack_ack(bytes, sizeof(bytes), version));
}

/* Of six datagrams and the end: 1, 2, 4, 3, 6, 6, -8. */
static const char REPORT[] =
    "00000000000000000000000000000000"
    "88000000000000000000283200000000000001ce000000010000000200000008000000000000001b"
    "000000000000009700000000000002650000000000000edd000000000000021f0002bf0100068a1b"
    "000000000000005000000007000043a400000001"
    "000000000000000000000000";

static void a_report_of_iperf_is_read(void) {
    uint8_t bytes[IPERF_REPORT_BYTES];
    iperf_report_t report;
    EXPECT(from_hex(bytes, REPORT) == IPERF_REPORT_BYTES);
    EXPECT(iperf_unpack_report(bytes, sizeof(bytes), &report));
    EXPECT(report.received_bytes == 10290 && report.whole_us == 462 && report.jitter_us == 27);
    EXPECT(report.lost_count == 1 && report.out_of_order_count == 2 && report.datagrams_count == 8);
    EXPECT(iperf_report_problem(&report, 8) == NULL);
    EXPECT(iperf_report_problem(&report, 7) != NULL);
    bytes[16] = 0; /* not marked as a report */
    EXPECT(!iperf_unpack_report(bytes, sizeof(bytes), &report));
}

static void a_report_is_written_as_iperf_reads_it(void) {
    const iperf_report_t report = {.received_bytes = INT64_C(7) << 32 | 5,
                                   .whole_us = 12345678,
                                   .lost_count = INT64_C(1) << 32,
                                   .out_of_order_count = 3,
                                   .datagrams_count = INT64_C(9) << 32 | 1,
                                   .jitter_us = 2000001};
    uint8_t bytes[IPERF_REPORT_BYTES];
    iperf_pack_report(bytes, &report);
    EXPECT(equals_hex(bytes, 56,
                      "00000000000000000000000000000000"
                      "880000000000000700000005"
                      "0000000c0005464e"
                      "000000000000000300000001"
                      "0000000200000001"));
    EXPECT(equals_hex(bytes + 116, 12, "000000010000000000000009"));
    iperf_report_t read;
    EXPECT(iperf_unpack_report(bytes, sizeof(bytes), &read));
    EXPECT(memcmp(&read, &report, sizeof(read)) == 0);
}

static void what_cannot_be_true_is_a_problem(void) {
    iperf_report_t report = {.datagrams_count = 10, .lost_count = 10};
    EXPECT(iperf_report_problem(&report, 10) == NULL);
    report.lost_count = 11;
    EXPECT(strstr(iperf_report_problem(&report, 10), "lost more") != NULL);
    report.lost_count = -1;
    EXPECT(strstr(iperf_report_problem(&report, 10), "negative") != NULL);
}

int main(void) {
    a_datagram_is_as_iperf_writes_it();
    a_sender_without_a_clock_is_known();
    an_acknowledgement_is_as_iperf_writes_it();
    a_report_of_iperf_is_read();
    a_report_is_written_as_iperf_reads_it();
    what_cannot_be_true_is_a_problem();
    return 0;
}
