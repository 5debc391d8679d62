/* SPDX-License-Identifier: Apache-2.0 */
/* wire.c: checksum, base64, varints, marked lines and command lines are those of
 * docs/reference/console-protocol.md. */
#include "wire.h"

#include "expect.h"

static void crc32_is_zlibs(void) {
    EXPECT(wire_crc32(0, "", 0) == 0);
    EXPECT(wire_crc32(0, "123456789", 9) == 0xcbf43926); /* the check value of CRC-32/ISO-HDLC */
    EXPECT(wire_crc32(wire_crc32(0, "1234", 4), "56789", 5) == 0xcbf43926);
}

static void base64_is_rfc_4648s(void) {
    static const char *const plain[] = {"", "f", "fo", "foo", "foob", "fooba", "foobar"};
    static const char *const coded[] = {"", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"};
    for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
        char text[16];
        uint8_t data[16];
        EXPECT(wire_base64_encode((const uint8_t *)plain[i], strlen(plain[i]), text) == strlen(coded[i]));
        EXPECT_TEXT(text, coded[i]);
        EXPECT(wire_base64_size(strlen(plain[i])) == strlen(coded[i]) + 1);
        EXPECT(wire_base64_decode(coded[i], data, sizeof(data)) == (int)strlen(plain[i]));
        EXPECT(memcmp(data, plain[i], strlen(plain[i])) == 0);
    }
}

static void malformed_base64_is_refused(void) {
    static const char *const bad[] = {
        "Z", "Zg", "Zg=", "Zg===", "Z===", "====", "Zh==", "Zm9=", "Zm 9v", "Zg==Zg=="};
    uint8_t data[16];
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        EXPECT(wire_base64_decode(bad[i], data, sizeof(data)) == -1);
    }
    EXPECT(wire_base64_decode("Zm9v", data, 2) == -1); /* more than there is room for */
}

static void differences_become_short_numbers(void) {
    uint8_t bytes[WIRE_VARINT_SIZE];
    EXPECT(wire_zigzag(0) == 0 && wire_zigzag(-1) == 1 && wire_zigzag(1) == 2 && wire_zigzag(-2) == 3);
    EXPECT(wire_zigzag(INT64_MIN) == UINT64_MAX);
    EXPECT(wire_varint(127, bytes) == 1 && bytes[0] == 127);
    EXPECT(wire_varint(300, bytes) == 2 && bytes[0] == 0xac && bytes[1] == 0x02);
    EXPECT(wire_varint(wire_zigzag(-(int64_t)UINT32_MAX), bytes) == 5);
    EXPECT(wire_varint(UINT64_MAX, bytes) == WIRE_VARINT_SIZE);
}

static void a_marked_line_is_escaped_and_checksummed(void) {
    char buffer[160];
    wire_line_t line;
    wire_line_start(&line, buffer, sizeof(buffer), 7, 'R');
    wire_line_word(&line, "x-1");
    wire_line_word(&line, "ok");
    wire_line_text(&line, "text", "a b*c@%\n\xc3\xa9");
    wire_line_int(&line, "least", INT64_MIN);
    wire_line_hex(&line, "hex", (const uint8_t *)"\x00\xff", 2);
    EXPECT(wire_line_finish(&line));
    EXPECT_TEXT(buffer, "@hil 1 7 R x-1 ok text=a%20b%2Ac%40%25%0A%C3%A9 least=-9223372036854775808 hex=00ff "
                        "*cadfcca0\n");
    EXPECT(line.length == strlen(buffer));
}

static void a_line_that_does_not_fit_is_never_cut(void) {
    char buffer[40];
    for (size_t size = 1; size <= sizeof(buffer); size++) {
        char *exact = malloc(size); /* so that AddressSanitizer sees one byte too many */
        wire_line_t line;
        wire_line_start(&line, exact, size, 1, 'D');
        wire_line_base64(&line, (const uint8_t *)"abcdefghi", 9);
        bool fits = wire_line_finish(&line);
        EXPECT(fits == (size >= sizeof("@hil 1 1 D YWJjZGVmZ2hp *00000000\n")));
        EXPECT(fits || line.length == 0);
        free(exact);
    }
}

/* Parse a copy of `text`, whose checksum may be asked for by ending it with " *". */
static wire_command_status_t parse(const char *text, wire_command_t *command) {
    static char line[WIRE_COMMAND_SIZE];
    size_t length = strlen(text);
    memcpy(line, text, length + 1);
    if (length > 2 && strcmp(text + length - 2, " *") == 0) {
        snprintf(line + length, sizeof(line) - length, "%08x", (unsigned)wire_crc32(0, text, length - 2));
    }
    return wire_command_parse(line, command);
}

static void a_command_is_taken_apart(void) {
    wire_command_t command;
    EXPECT(parse("info", &command) == WIRE_COMMAND_OK);
    EXPECT_TEXT(command.tag, "-");
    EXPECT_TEXT(command.text, "info");
    EXPECT(parse("#a1-2.x run publish qos=1 *", &command) == WIRE_COMMAND_OK);
    EXPECT_TEXT(command.tag, "a1-2.x");
    EXPECT_TEXT(command.text, "run publish qos=1");
    EXPECT(parse("info *", &command) == WIRE_COMMAND_OK);
    EXPECT_TEXT(command.text, "info");
    EXPECT(parse("", &command) == WIRE_COMMAND_EMPTY && parse("   ", &command) == WIRE_COMMAND_EMPTY);
}

static void a_damaged_command_is_refused(void) {
    wire_command_t command;
    EXPECT(parse("info *00000000", &command) == WIRE_COMMAND_BAD_CRC);
    EXPECT(parse("info *0000000", &command) == WIRE_COMMAND_BAD_CRC);
    EXPECT(parse("#tag info", &command) == WIRE_COMMAND_BAD_CRC); /* a tagged line has a checksum */
    EXPECT(parse("#tag", &command) == WIRE_COMMAND_BAD_CRC);
    EXPECT(parse("# info *", &command) == WIRE_COMMAND_BAD_LINE);
    EXPECT(parse("#- info *", &command) == WIRE_COMMAND_BAD_LINE);
    EXPECT(parse("#a_b info *", &command) == WIRE_COMMAND_BAD_LINE);
    EXPECT(parse("#abcdefghijklmnopqrstuvwx info *", &command) == WIRE_COMMAND_BAD_LINE);
    EXPECT(parse("in\tfo", &command) == WIRE_COMMAND_BAD_LINE);
    EXPECT(parse("inf\xc3\xb6", &command) == WIRE_COMMAND_BAD_LINE);
}

/* Every line that differs from a good one in a single bit is refused. */
static void no_single_bit_error_gets_through(void) {
    static const char good[] = "#a-1 provision psk 0 c2VjcmV0IQ== *";
    char line[80];
    snprintf(line, sizeof(line), "%s%08x", good, (unsigned)wire_crc32(0, good, strlen(good) - 2));
    for (size_t bit = 0; bit < 8 * strlen(line); bit++) {
        char damaged[80];
        wire_command_t command;
        strcpy(damaged, line);
        damaged[bit / 8] = (char)(damaged[bit / 8] ^ (1 << (bit % 8)));
        bool same_digit = damaged[bit / 8] == (line[bit / 8] ^ 0x20) && bit / 8 > strlen(line) - 9;
        EXPECT(same_digit || wire_command_parse(damaged, &command) != WIRE_COMMAND_OK ||
               strcmp(command.tag, "-") == 0); /* without its `#` it is a person's unknown command */
    }
}

static void numbers_are_whole_words(void) {
    int64_t value = 0;
    uint32_t crc = 0;
    EXPECT(wire_parse_int("-42", &value) && value == -42);
    EXPECT(wire_parse_int("9223372036854775807", &value) && value == INT64_MAX);
    EXPECT(!wire_parse_int("9223372036854775808", &value));
    EXPECT(!wire_parse_int("", &value) && !wire_parse_int("+1", &value) && !wire_parse_int(" 1", &value));
    EXPECT(!wire_parse_int("1x", &value) && !wire_parse_int("-", &value));
    EXPECT(wire_parse_crc("0Badcafe", &crc) && crc == 0x0badcafe);
    EXPECT(!wire_parse_crc("0badcaf", &crc) && !wire_parse_crc("0badcafe0", &crc));
    EXPECT(!wire_parse_crc("0xadcafe", &crc));
}

int main(void) {
    crc32_is_zlibs();
    base64_is_rfc_4648s();
    malformed_base64_is_refused();
    differences_become_short_numbers();
    a_marked_line_is_escaped_and_checksummed();
    a_line_that_does_not_fit_is_never_cut();
    a_command_is_taken_apart();
    a_damaged_command_is_refused();
    no_single_bit_error_gets_through();
    numbers_are_whole_words();
    return 0;
}
