/* SPDX-License-Identifier: Apache-2.0 */
/* components/iperf's messages, byte by byte as iperf 2.1.8 (Debian 12) wrote them on a loopback, and what of
 * a peer's bytes is refused. */
#include "hex.h"
#include "messages.h"

enum { PORT = 0x170d }; /* of those recordings */

static iperf_settings_t settings_of(iperf_protocol_t protocol, bool reverse) {
    bool udp = protocol == IPERF_UDP;
    return (iperf_settings_t){.protocol = protocol,
                              .reverse = reverse,
                              .rate_bps = udp ? IPERF_UDP_RATE_BPS : 0,
                              .duration_ms = 1000};
}

/* ---- the client's header ---- */

static const char TCP[] = "40010078000000010000170d0000000000000000ffffff9c0000000000000000000000000002000100"
                          "08000300000000000000000000000000000000";
static const char TCP_REVERSE[] =
    "44010078000000010000170d0000000000000000fffffed40000000000000000040000000002"
    "00010008000300000000000000000000000000000000";
static const char TCP_AMOUNT[] =
    "44010078000000010000170d000003e80000000000100000000000000000000004000000000200"
    "010008000300000000000000000000000000000000";
static const char UDP[] = "48010098000000010000170d0000000000000000ffffff9c0000000000000000000000000002000100"
                          "08000300000000001000000000000000000000";
static const char UDP_REVERSE[] =
    "6c010098000000010000170d0000019000000000ffffff9c0000000000000000040000000002"
    "000100080003000000000"
    "04c4b400000000000000000";

static bool packs(iperf_settings_t settings, const char *text) {
    uint8_t bytes[IPERF_CLIENT_HEADER_BYTES];
    iperf_pack_client_header(bytes, &settings, PORT);
    return equals_hex(bytes, sizeof(bytes), text);
}

static void a_header_is_as_iperf_writes_it(void) {
    iperf_settings_t settings = settings_of(IPERF_TCP, false);
    EXPECT(packs(settings, TCP));
    settings = settings_of(IPERF_TCP, true);
    settings.duration_ms = 3000;
    EXPECT(packs(settings, TCP_REVERSE));
    settings.amount_bytes = 1048576;
    settings.length_bytes = 1000;
    EXPECT(packs(settings, TCP_AMOUNT));
    EXPECT(packs(settings_of(IPERF_UDP, false), UDP));
    settings = settings_of(IPERF_UDP, true);
    settings.length_bytes = 400;
    settings.rate_bps = 5000000;
    EXPECT(packs(settings, UDP_REVERSE));
}

static iperf_header_verdict_t unpack(const char *text, iperf_protocol_t protocol,
                                     iperf_client_header_t *header) {
    uint8_t bytes[512];
    return iperf_unpack_client_header(bytes, from_hex(bytes, text), protocol, header);
}

static void a_header_is_read(void) {
    iperf_client_header_t header;
    EXPECT(unpack(TCP, IPERF_TCP, &header) == IPERF_HEADER_READ);
    EXPECT(!header.reverse && header.wants_ack && header.amount == -100 && header.length_bytes == 0);
    EXPECT_TEXT(header.version, "2.1.8");
    EXPECT(unpack(TCP_AMOUNT, IPERF_TCP, &header) == IPERF_HEADER_READ);
    EXPECT(header.reverse && !header.wants_ack && header.amount == 1048576 && header.length_bytes == 1000);
    EXPECT(unpack(UDP_REVERSE, IPERF_UDP, &header) == IPERF_HEADER_READ);
    EXPECT(header.reverse && header.id_is_64_bit && header.rate_bps == 5000000);
}

static void only_the_same_test_is_agreed_on(void) {
    iperf_client_header_t header;
    iperf_settings_t settings = settings_of(IPERF_UDP, true);
    settings.length_bytes = 400;
    settings.rate_bps = 5000000;
    unpack(UDP_REVERSE, IPERF_UDP, &header);
    EXPECT(iperf_disagreement(&header, &settings) == NULL);
    settings.rate_bps++;
    EXPECT(iperf_disagreement(&header, &settings) != NULL);
    settings.rate_bps--;
    settings.length_bytes++;
    EXPECT(iperf_disagreement(&header, &settings) != NULL);
    settings.length_bytes--;
    settings.duration_ms += 10;
    EXPECT(iperf_disagreement(&header, &settings) != NULL);
    settings.duration_ms -= 10;
    settings.reverse = false;
    EXPECT(iperf_disagreement(&header, &settings) != NULL);
}

static bool refuses(const char *text, iperf_header_verdict_t verdict, const char *word) {
    iperf_client_header_t header;
    return unpack(text, IPERF_TCP, &header) == verdict && header.problem != NULL &&
           strstr(header.problem, word) != NULL;
}

static void what_is_not_spoken_is_named(void) {
    /* -d, --full-duplex, --trip-times, --bounceback, as recorded */
    EXPECT(
        refuses("c0010079000000010000170d0000000000000000ffffff9c00000000000000000000000000020001000800030000"
                "0000000000000000000000000000",
                IPERF_HEADER_REFUSED, "-d or -r"));
    EXPECT(
        refuses("44010078000000010000170d0000000000000000ffffff9c00000000000000000800000000020001000800030000"
                "0000000000000000000000000000",
                IPERF_HEADER_REFUSED, "--full-duplex"));
    EXPECT(
        refuses("400100a0000000010000170d0000000000000000ffffff9c00000000000000000010000000020001000800030000"
                "00000000000000000000000000000000000000000000000000000000000000000000",
                IPERF_HEADER_REFUSED, "--trip-times"));
    EXPECT(
        refuses("40010078000000020000170d0000000000000000ffffff9c00000000000000000000000000020001000800030000"
                "0000000000000000000000000000",
                IPERF_HEADER_REFUSED, "-P")); /* threads: 2 */
    EXPECT(refuses("00800000000000640000000180005a5a000000006b01cc00", IPERF_HEADER_REFUSED, "--bounceback"));
    EXPECT(
        refuses("50010078000000010000170d0000000000000000ffffff9c00000000000000000000000000020001000800030000"
                "0000000000000000000000000000",
                IPERF_HEADER_REFUSED, "--permit-key"));
}

static void what_is_not_iperf_2_is_garbage(void) {
    EXPECT(refuses("6162326364", IPERF_HEADER_GARBAGE, "iperf 3"));
    EXPECT(refuses("474554202f20485454502f312e310d0a", IPERF_HEADER_GARBAGE, "garbage")); /* GET / */
    EXPECT(refuses("160301020001fc0303", IPERF_HEADER_GARBAGE, "garbage"));               /* TLS */
    EXPECT(refuses("5353482d322e30", IPERF_HEADER_GARBAGE, "garbage"));                   /* SSH-2.0 */
    EXPECT(refuses("4001", IPERF_HEADER_GARBAGE, "garbage"));
    EXPECT(refuses("40010078000000010000170d", IPERF_HEADER_GARBAGE, "garbage")); /* cut */
    EXPECT(
        refuses("40010078000000010000170d0000000000000000ffffff9c00000000000000000000000000030001000800030000"
                "0000000000000000000000000000",
                IPERF_HEADER_GARBAGE, "another iperf"));
    iperf_client_header_t header;
    EXPECT(unpack("3031323334353637", IPERF_TCP, &header) == IPERF_HEADER_NONE); /* a payload */
    EXPECT(unpack("00000000", IPERF_TCP, &header) == IPERF_HEADER_NONE);
}

/* Whatever the flags say, no header is longer than what is read into, and nothing is read beyond the end. */
static void no_flags_lead_astray(void) {
    uint32_t random = 1;
    for (int i = 0; i < 200000; i++) {
        uint8_t bytes[IPERF_CLIENT_HEADER_MAX_BYTES];
        for (size_t at = 0; at < 64; at++) {
            random = random * 1664525U + 1013904223U;
            bytes[at] = (uint8_t)(random >> 24);
        }
        int length = iperf_client_header_bytes(bytes, IPERF_TCP);
        EXPECT(length == -1 || length == 0 || (length >= 24 && length <= IPERF_CLIENT_HEADER_MAX_BYTES));
        iperf_client_header_t header;
        uint8_t *exact = malloc(random % 64 + 1); /* the sanitizer watches its end */
        memcpy(exact, bytes, random % 64 + 1);
        iperf_unpack_client_header(exact, random % 64 + 1, i % 2 ? IPERF_UDP : IPERF_TCP, &header);
        iperf_report_t report;
        iperf_unpack_report(exact, random % 64 + 1, &report);
        char version[IPERF_VERSION_SIZE];
        iperf_unpack_ack(exact, random % 64 + 1, version);
        free(exact);
    }
}

int main(void) {
    a_header_is_as_iperf_writes_it();
    a_header_is_read();
    only_the_same_test_is_agreed_on();
    what_is_not_spoken_is_named();
    what_is_not_iperf_2_is_garbage();
    no_flags_lead_astray();
    return 0;
}
