/* SPDX-License-Identifier: Apache-2.0 */
#include "messages.h"

#include <stdio.h>
#include <string.h>

#include "bytes.h"

/* Flags of the client's header. */
#define VERSION1 0x80000000U /* -d or -r */
#define EXTEND 0x40000000U
#define UDPTESTS 0x20000000U
#define KEYCHECK 0x10000000U
#define SEQNO64B 0x08000000U
#define VERSION2 0x04000000U
#define PEERDETECT 0x02000000U
#define BOUNCEBACK 0x00800000U
#define LENGTH_BIT 0x00010000U
#define LENGTH_MASK 0x000001FEU /* length times two */

/* Flags of its extension, in 16 bits. */
#define UPPER_ISOCHRONOUS 0x0001U
#define UPPER_TRIPTIME 0x0010U
#define UPPER_REVERSE 0x0400U
#define UPPER_FULLDUPLEX 0x0800U
#define UPPER_EPOCH_START 0x1000U
#define UPPER_PERIODICBURST 0x2000U

/* Version 2.1.8, a release: what this peer behaves as. */
#define VERSION_UPPER 0x00020001U
#define VERSION_LOWER 0x00080003U

#define ACK_TYPE 2U
#define ACK_TRIPTIME_BYTES 52U
#define FLAGS_BYTES 4
#define V1_BYTES 24

static void write_version(char out[IPERF_VERSION_SIZE], uint32_t upper, uint32_t lower) {
    snprintf(out, IPERF_VERSION_SIZE, "%u.%u.%u", (unsigned)(upper >> 16 & 0xFF), (unsigned)(upper & 0xFF),
             (unsigned)(lower >> 16 & 0xFF));
}

void iperf_pack_datagram(uint8_t *out, int64_t id, int64_t sent_us) {
    put32(out, 0, (uint32_t)id);
    put32(out, 4, (uint32_t)(sent_us / 1000000));
    put32(out, 8, (uint32_t)(sent_us % 1000000));
    put32(out, 12, (uint32_t)((uint64_t)id >> 32));
}

iperf_datagram_t iperf_unpack_datagram(const uint8_t *in, bool id_is_64_bit) {
    uint32_t seconds = get32(in, 4), microseconds = get32(in, 8);
    bool stamped = seconds != 0 && microseconds < 1000000;
    return (iperf_datagram_t){
        .id = id_is_64_bit ? join(get32(in, 12), get32(in, 0)) : (int32_t)get32(in, 0),
        .sent_us = stamped ? (int64_t)seconds * 1000000 + microseconds : -1,
    };
}

void iperf_pack_client_header(uint8_t *out, const iperf_settings_t *settings, uint16_t port) {
    bool udp = settings->protocol == IPERF_UDP;
    uint32_t length = IPERF_CLIENT_HEADER_BYTES + (udp ? IPERF_DATAGRAM_HEADER_BYTES : 0);
    uint32_t flags = EXTEND | LENGTH_BIT | length << 1;
    flags |= udp ? SEQNO64B : 0;
    flags |= settings->reverse ? VERSION2 | (udp ? UDPTESTS : 0) : 0;
    uint32_t amount = settings->amount_bytes > 0 ? (uint32_t)settings->amount_bytes & 0x7FFFFFFFU
                                                 : -(settings->duration_ms / 10);
    memset(out, 0, IPERF_CLIENT_HEADER_BYTES);
    put32(out, 0, flags);
    put32(out, 4, 1); /* threads */
    put32(out, 8, port);
    put32(out, 12, settings->length_bytes);
    put32(out, 20, amount);
    put16(out, 32, settings->reverse ? UPPER_REVERSE : 0);
    put32(out, 36, VERSION_UPPER);
    put32(out, 40, VERSION_LOWER);
    put32(out, 48, (uint32_t)settings->rate_bps);
    put32(out, 52, (uint32_t)(settings->rate_bps >> 32) << 8);
}

/* The cookie of iperf 3 is of these characters. */
static bool is_cookie(const uint8_t *in) {
    for (size_t i = 0; i < 4; i++) {
        bool letter = in[i] >= 'a' && in[i] <= 'z', digit = in[i] >= '2' && in[i] <= '7';
        if (!letter && !digit) {
            return false;
        }
    }
    return true;
}

int iperf_client_header_bytes(const uint8_t *in, iperf_protocol_t protocol) {
    const int before = protocol == IPERF_UDP ? IPERF_DATAGRAM_HEADER_BYTES : 0; /* counts as header, too */
    uint32_t flags = get32(in, 0);
    if (is_cookie(in)) {
        return -1;
    }
    if ((flags & BOUNCEBACK) != 0 && (flags & (VERSION1 | EXTEND)) == 0) {
        return V1_BYTES;
    }
    if ((flags & EXTEND) != 0) {
        int length = (flags & LENGTH_BIT) != 0 ? (int)((flags & LENGTH_MASK) >> 1) - before
                                               : IPERF_CLIENT_HEADER_BYTES;
        return length >= IPERF_CLIENT_HEADER_BYTES ? length : -1;
    }
    if ((flags & VERSION1) != 0) {
        return V1_BYTES;
    }
    return (flags & VERSION2) != 0 && (flags & LENGTH_BIT) != 0 ? -1 : 0;
}

/* The option that asks for what is not spoken here, with its reason; NULL where there is none. */
static const char *refused_option(uint32_t flags, uint32_t upper, uint32_t threads) {
    if ((flags & BOUNCEBACK) != 0) {
        return "asks for --bounceback, which the board does not speak";
    }
    if (threads > 1) {
        return "asks for -P above 1, which the board does not speak: it measures one stream";
    }
    if ((flags & VERSION1) != 0) {
        return "asks for -d or -r, which the board does not speak; use -R";
    }
    if ((flags & KEYCHECK) != 0) {
        return "asks for --permit-key, which the board does not speak";
    }
    if ((upper & UPPER_FULLDUPLEX) != 0) {
        return "asks for --full-duplex, which the board does not speak; use -R";
    }
    if ((upper & (UPPER_ISOCHRONOUS | UPPER_PERIODICBURST)) != 0) {
        return "asks for --isochronous or --burst-period, which the board does not speak";
    }
    if ((upper & (UPPER_TRIPTIME | UPPER_EPOCH_START)) != 0) {
        return "asks for --trip-times or --txstart-time, which the board does not speak";
    }
    return NULL;
}

static void read_extension(const uint8_t *in, uint32_t flags, iperf_client_header_t *header) {
    uint32_t upper = get16(in, 32);
    header->reverse = (flags & VERSION2) != 0 && (upper & UPPER_REVERSE) != 0;
    header->rate_bps = (uint64_t)join(get32(in, 52) >> 8, get32(in, 48));
    header->problem = refused_option(flags, upper, get32(in, 4));
    write_version(header->version, get32(in, 36), get32(in, 40));
}

iperf_header_verdict_t iperf_unpack_client_header(const uint8_t *in, size_t length, iperf_protocol_t protocol,
                                                  iperf_client_header_t *header) {
    *header = (iperf_client_header_t){.problem = "sent garbage instead of iperf 2's header"};
    int header_bytes = length >= FLAGS_BYTES ? iperf_client_header_bytes(in, protocol) : -1;
    if (header_bytes == 0) {
        header->problem = NULL;
        return IPERF_HEADER_NONE;
    }
    if (header_bytes < 0 || (size_t)header_bytes > length) {
        header->problem = length >= FLAGS_BYTES && is_cookie(in) ? "speaks iperf 3; the board speaks iperf 2"
                                                                 : header->problem;
        return IPERF_HEADER_GARBAGE;
    }
    uint32_t flags = get32(in, 0);
    header->problem = refused_option(flags, 0, get32(in, 4));
    header->id_is_64_bit = (flags & SEQNO64B) != 0;
    header->wants_ack = (flags & PEERDETECT) != 0 || (flags & (VERSION2 | EXTEND)) == EXTEND;
    header->length_bytes = get32(in, 12);
    header->amount = (int32_t)get32(in, 20);
    if ((flags & EXTEND) != 0) {
        read_extension(in, flags, header);
        if (get32(in, 36) >> 16 != VERSION_UPPER >> 16) {
            header->problem = "says it is another iperf than 2; the board speaks iperf 2";
            return IPERF_HEADER_GARBAGE;
        }
    }
    return header->problem == NULL ? IPERF_HEADER_READ : IPERF_HEADER_REFUSED;
}

const char *iperf_disagreement(const iperf_client_header_t *header, const iperf_settings_t *settings) {
    if (header->reverse != settings->reverse) {
        return settings->reverse ? "did not ask for -R, the case has reverse=1"
                                 : "asks for -R, the case has reverse=0";
    }
    int64_t amount = settings->amount_bytes > 0 ? (int64_t)(settings->amount_bytes & 0x7FFFFFFFU)
                                                : -(int64_t)(settings->duration_ms / 10);
    if (header->amount != amount) {
        return "asks for another -t or -n than the case's duration_s or amount_bytes";
    }
    if (header->length_bytes != 0 && header->length_bytes != settings->length_bytes) {
        return "asks for another -l than the case's length_bytes";
    }
    if (header->rate_bps != 0 && header->rate_bps != settings->rate_bps) {
        return "asks for another -b than the case's rate_kbps";
    }
    return NULL;
}

void iperf_pack_ack(uint8_t *out) {
    memset(out, 0, IPERF_ACK_BYTES);
    put32(out, 0, ACK_TYPE);
    put32(out, 4, IPERF_ACK_BYTES);
    put32(out, 12, VERSION_UPPER);
    put32(out, 16, VERSION_LOWER);
}

bool iperf_unpack_ack(const uint8_t *in, size_t length, char version[IPERF_VERSION_SIZE]) {
    if (length < IPERF_ACK_BYTES || get32(in, 0) != ACK_TYPE ||
        (get32(in, 4) != IPERF_ACK_BYTES && get32(in, 4) != ACK_TRIPTIME_BYTES)) {
        return false;
    }
    write_version(version, get32(in, 12), get32(in, 16));
    return true;
}
