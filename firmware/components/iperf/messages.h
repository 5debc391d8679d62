/* SPDX-License-Identifier: Apache-2.0 */
/* iperf 2's messages, as 2.1.8 writes them: big endian, no padding. Nothing here knows of sockets. */
#pragma once

#include "iperf/iperf.h"

enum {
    IPERF_DATAGRAM_HEADER_BYTES = 16, /* id, seconds, microseconds, upper half of the id */
    IPERF_CLIENT_HEADER_BYTES = 60,
    IPERF_CLIENT_HEADER_MAX_BYTES = 256,
    IPERF_ACK_BYTES = 28,
    IPERF_REPORT_BYTES = 128, /* with the datagram header */
    IPERF_REPORT_MIN_BYTES = 56,
};

typedef struct {
    int64_t id;      /* from 1; negative: the last one */
    int64_t sent_us; /* the sender's wall clock; -1 where it wrote none */
} iperf_datagram_t;

typedef enum {
    IPERF_HEADER_READ,
    IPERF_HEADER_NONE,    /* plain traffic of a peer that writes no header */
    IPERF_HEADER_REFUSED, /* asks for what is not spoken here: `problem` names it */
    IPERF_HEADER_GARBAGE, /* not iperf 2: `problem` says what it looks like */
} iperf_header_verdict_t;

/* What the client tells the server at the start. */
typedef struct {
    bool reverse;
    bool wants_ack;
    bool id_is_64_bit;
    uint32_t length_bytes; /* 0: not said */
    int64_t amount;        /* bytes; negative: hundredths of a second */
    uint64_t rate_bps;     /* 0: not said */
    char version[IPERF_VERSION_SIZE];
    const char *problem;
} iperf_client_header_t;

/* Write the first 16 bytes of a datagram. */
void iperf_pack_datagram(uint8_t *out, int64_t id, int64_t sent_us);

/* `in` has at least 16 bytes. */
iperf_datagram_t iperf_unpack_datagram(const uint8_t *in, bool id_is_64_bit);

/* Write the 60 bytes with which a client begins (in UDP: each datagram, behind its header). `port` is the
 * peer's. */
void iperf_pack_client_header(uint8_t *out, const iperf_settings_t *settings, uint16_t port);

/* Length of the header that begins with these four bytes: 0 none, -1 garbage. In UDP it does not include the
 * datagram's. */
int iperf_client_header_bytes(const uint8_t *in, iperf_protocol_t protocol);

iperf_header_verdict_t iperf_unpack_client_header(const uint8_t *in, size_t length, iperf_protocol_t protocol,
                                                  iperf_client_header_t *header);

/* What the client's header and the case do not agree on, as a sentence; NULL where they agree. */
const char *iperf_disagreement(const iperf_client_header_t *header, const iperf_settings_t *settings);

void iperf_pack_ack(uint8_t *out);

/* True, and the server's version, if these bytes are an acknowledgement of the client's header. */
bool iperf_unpack_ack(const uint8_t *in, size_t length, char version[IPERF_VERSION_SIZE]);

/* Write the 128 bytes of the report. */
void iperf_pack_report(uint8_t *out, const iperf_report_t *report);

/* False if these bytes are no report. */
bool iperf_unpack_report(const uint8_t *in, size_t length, iperf_report_t *report);

/* Why this cannot be the report of a test whose last datagram was `last_id`, as a sentence; NULL where it
 * can. */
const char *iperf_report_problem(const iperf_report_t *report, int64_t last_id);
