/* SPDX-License-Identifier: Apache-2.0 */
/* link/esp/link_words.c: what the words of the field `link` say, and what is said of wrong ones. */
#include "link_words.h"

#include <string.h>

#include "expect.h"

static link_words_t s_words;
static char s_fault[LINK_FAULT_SIZE];

static bool parse(const char *text) {
    memset(&s_words, 0xff, sizeof(s_words));
    s_fault[0] = '\0';
    return link_words_parse(text, &s_words, s_fault);
}

/* Nothing said, and `wifi`, are Wi-Fi. */
static void test_wifi_is_what_a_board_has_unless_told(void) {
    EXPECT(parse("") && s_words.type == LINK_WIFI);
    EXPECT(parse("wifi") && s_words.type == LINK_WIFI);
}

/* Each type's words arrive; what may be left out has its value. */
static void test_words_arrive(void) {
    EXPECT(parse("openeth") && s_words.type == LINK_OPENETH && s_words.prefix == 0 && !s_words.has_mac);
    EXPECT(parse("rmii phy=lan87xx addr=-1 mdc=23 mdio=18 reset=5 clock=out clock_gpio=17"));
    EXPECT(s_words.type == LINK_RMII && s_words.phy == LINK_PHY_LAN87XX && s_words.phy_address == -1);
    EXPECT(s_words.mdc_gpio == 23 && s_words.mdio_gpio == 18 && s_words.reset_gpio == 5);
    EXPECT(s_words.clock_out == 1 && s_words.clock_gpio == 17);
    EXPECT(parse("w5500 host=1 sclk=14 mosi=13 miso=12 cs=15 int=4 mhz=20"));
    EXPECT(s_words.type == LINK_W5500 && s_words.spi_host == 1 && s_words.sclk_gpio == 14);
    EXPECT(s_words.mosi_gpio == 13 && s_words.miso_gpio == 12 && s_words.cs_gpio == 15);
    EXPECT(s_words.int_gpio == 4 && s_words.spi_mhz == 20 && s_words.reset_gpio == -1);
}

/* A static address, a gateway and a hardware address are said of any cable. */
static void test_addresses_arrive(void) {
    static const uint8_t address[4] = {10, 77, 0, 11}, gateway[4] = {10, 77, 0, 1};
    static const uint8_t mac[6] = {0x02, 0, 0, 0, 0xab, 0xff};
    EXPECT(parse("openeth address=10.77.0.11/24 gateway=10.77.0.1 mac=02:00:00:00:ab:ff"));
    EXPECT(memcmp(s_words.address, address, sizeof(address)) == 0 && s_words.prefix == 24);
    EXPECT(memcmp(s_words.gateway, gateway, sizeof(gateway)) == 0);
    EXPECT(s_words.has_mac && memcmp(s_words.mac, mac, sizeof(mac)) == 0);
}

static const struct {
    const char *text, *fault;
} WRONG[] = {
    {"ethernet", "unknown type 'ethernet'"},
    {" openeth", "unknown type ''"},
    {"openeth ", "unknown word ''"},
    {"openeth  mac=02:00:00:00:00:01", "unknown word ''"},
    {"wifi address=10.0.0.2/24", "unknown word 'address=10.0.0.2/24'"},
    {"openeth mdc=23", "unknown word 'mdc=23'"},
    {"openeth address", "unknown word 'address'"},
    {"openeth address=10.0.0.2", "no possible value: 'address=10.0.0.2'"},
    {"openeth address=10.0.0.256/24", "no possible value: 'address=10.0.0.256/24'"},
    {"openeth address=10.0.0.2/31", "no possible value: 'address=10.0.0.2/31'"},
    {"openeth address=10.0.0.2/0", "no possible value: 'address=10.0.0.2/0'"},
    {"openeth address=10.0.0.2/24.", "no possible value: 'address=10.0.0.2/24.'"},
    {"openeth gateway=10.0.0.1", "missing word 'address'"},
    {"openeth mac=02:00:00:00:00", "no possible value: 'mac=02:00:00:00:00'"},
    {"openeth mac=02:00:00:00:00:0G", "no possible value: 'mac=02:00:00:00:00:0G'"},
    {"rmii phy=lan87xx addr=1 mdc=23 mdio=18 clock=in", "missing word 'clock_gpio'"},
    {"rmii phy=lan8720", "no possible value: 'phy=lan8720'"},
    {"rmii phy=ip101 phy=ip101", "said twice: 'phy=ip101'"},
    {"rmii mdc=-1", "no possible value: 'mdc=-1'"},
    {"rmii mdc=", "no possible value: 'mdc='"},
    {"rmii mdc=2x", "no possible value: 'mdc=2x'"},
    {"rmii mdc=99999999999", "no possible value: 'mdc=99999999999'"},
    {"w5500 host=3", "no possible value: 'host=3'"},
};

/* A wrong text is refused by a sentence that names the word. */
static void test_a_wrong_word_is_named(void) {
    for (size_t i = 0; i < sizeof(WRONG) / sizeof(WRONG[0]); i++) {
        EXPECT(!parse(WRONG[i].text));
        EXPECT_TEXT(s_fault, WRONG[i].fault);
    }
}

int main(void) {
    test_wifi_is_what_a_board_has_unless_told();
    test_words_arrive();
    test_addresses_arrive();
    test_a_wrong_word_is_named();
    return 0;
}
