/* SPDX-License-Identifier: Apache-2.0 */
#include "link_words.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { WORD_SIZE = 40, GPIO_MAX = 63 };

static const char *const TYPES[] = {"wifi", "openeth", "rmii", "w5500", NULL};
static const char *const PHYS[] = {"generic", "lan87xx", "ip101", "rtl8201", "dp83848", "ksz80xx", NULL};
static const char *const CLOCKS[] = {"in", "out", NULL};

const char *link_type_name(link_type_t type) {
    return TYPES[type];
}

enum { WIFI = 0, OPENETH = 1 << LINK_OPENETH, RMII = 1 << LINK_RMII, W5500 = 1 << LINK_W5500 };

/* A number from min to max, or a place in `names`; which types have it, and of which it must be said. */
typedef struct {
    const char *key;
    size_t offset;
    int32_t min, max;
    const char *const *names;
    unsigned types, required;
} field_t;

#define NUMBER(key, member, min, max, types)                                                                 \
    { key, offsetof(link_words_t, member), min, max, NULL, types, types }
#define NAME(key, member, names, types)                                                                      \
    { key, offsetof(link_words_t, member), 0, 0, names, types, types }

static const field_t FIELDS[] = {
    NAME("phy", phy, PHYS, RMII),
    NUMBER("addr", phy_address, -1, 31, RMII),
    NUMBER("mdc", mdc_gpio, 0, GPIO_MAX, RMII),
    NUMBER("mdio", mdio_gpio, 0, GPIO_MAX, RMII),
    NAME("clock", clock_out, CLOCKS, RMII),
    NUMBER("clock_gpio", clock_gpio, 0, GPIO_MAX, RMII),
    NUMBER("host", spi_host, 1, 2, W5500),
    NUMBER("sclk", sclk_gpio, 0, GPIO_MAX, W5500),
    NUMBER("mosi", mosi_gpio, 0, GPIO_MAX, W5500),
    NUMBER("miso", miso_gpio, 0, GPIO_MAX, W5500),
    NUMBER("cs", cs_gpio, 0, GPIO_MAX, W5500),
    NUMBER("int", int_gpio, 0, GPIO_MAX, W5500),
    NUMBER("mhz", spi_mhz, 1, 80, W5500),
    {"reset", offsetof(link_words_t, reset_gpio), -1, GPIO_MAX, NULL, RMII | W5500, WIFI},
};
enum { FIELD_COUNT = sizeof(FIELDS) / sizeof(FIELDS[0]) };

/* What is said of each type but Wi-Fi, in forms of their own. */
static const char *const COMMON[] = {"address", "gateway", "mac"};
enum { ADDRESS = FIELD_COUNT, GATEWAY, MAC, ALL_KEYS };

/* Take digits of a base, at least one and no more than `max` allows; moves on `at`. */
static bool take_digits(const char **at, int base, int32_t max, int32_t *value) {
    static const char digits[] = "0123456789abcdef";
    const char *from = *at;
    for (*value = 0; **at != '\0'; (*at)++) {
        const char *digit = memchr(digits, **at, (size_t)base);
        if (digit == NULL) {
            break;
        }
        *value = *value * base + (int32_t)(digit - digits);
        if (*value > max) {
            return false;
        }
    }
    return *at > from;
}

/* Take bytes with a separator between them. */
static bool take_bytes(const char **at, int base, char separator, uint8_t *bytes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        int32_t value;
        if ((i > 0 && *(*at)++ != separator) || !take_digits(at, base, UINT8_MAX, &value)) {
            return false;
        }
        bytes[i] = (uint8_t)value;
    }
    return true;
}

static bool take_common(size_t key, const char *text, link_words_t *words) {
    bool good = false;
    if (key == MAC) {
        good = words->has_mac = take_bytes(&text, 16, ':', words->mac, sizeof(words->mac));
    } else if (key == GATEWAY) {
        good = take_bytes(&text, 10, '.', words->gateway, sizeof(words->gateway));
    } else {
        good = take_bytes(&text, 10, '.', words->address, sizeof(words->address)) && *text++ == '/' &&
               take_digits(&text, 10, 30, &words->prefix) && words->prefix > 0;
    }
    return good && *text == '\0';
}

static bool take_number(const field_t *field, const char *text, int32_t *value) {
    int32_t sign = *text == '-' ? -1 : 1;
    text += sign < 0;
    bool good = take_digits(&text, 10, field->max, value) && *text == '\0';
    *value *= sign;
    return good && *value >= field->min;
}

static bool take_name(const char *const *names, const char *text, int32_t *value) {
    for (*value = 0; names[*value] != NULL; (*value)++) {
        if (strcmp(names[*value], text) == 0) {
            return true;
        }
    }
    return false;
}

static bool take_value(size_t key, const char *text, link_words_t *words) {
    if (key >= FIELD_COUNT) {
        return take_common(key, text, words);
    }
    const field_t *field = &FIELDS[key];
    int32_t *member = (int32_t *)(void *)((char *)words + field->offset);
    return field->names != NULL ? take_name(field->names, text, member) : take_number(field, text, member);
}

/* The key that a word begins with, ALL_KEYS where the type has none such. */
static size_t find_key(link_type_t type, const char *word, size_t length) {
    for (size_t i = 0; i < ALL_KEYS; i++) {
        const char *key = i < FIELD_COUNT ? FIELDS[i].key : COMMON[i - FIELD_COUNT];
        bool known = i >= FIELD_COUNT ? type != LINK_WIFI : (FIELDS[i].types & 1u << type) != 0;
        if (known && strlen(key) == length && strncmp(key, word, length) == 0) {
            return i;
        }
    }
    return ALL_KEYS;
}

static bool say(char fault[LINK_FAULT_SIZE], const char *what, const char *word) {
    snprintf(fault, LINK_FAULT_SIZE, "%s '%s'", what, word);
    return false;
}

static bool take_word(const char *word, link_words_t *words, unsigned *said, char fault[LINK_FAULT_SIZE]) {
    const char *equals = strchr(word, '=');
    size_t key = equals != NULL ? find_key(words->type, word, (size_t)(equals - word)) : ALL_KEYS;
    if (key == ALL_KEYS) {
        return say(fault, "unknown word", word);
    }
    if ((*said & 1u << key) != 0) {
        return say(fault, "said twice:", word);
    }
    *said |= 1u << key;
    return take_value(key, equals + 1, words) || say(fault, "no possible value:", word);
}

/* Copy the next word; moves on to behind the one blank after it. An over-long one is cut, and so unknown. */
static void next_word(const char **at, char word[WORD_SIZE]) {
    size_t length = strcspn(*at, " ");
    snprintf(word, WORD_SIZE, "%.*s", (int)length, *at);
    *at += length;
}

static bool check_all_said(const link_words_t *words, unsigned said, char fault[LINK_FAULT_SIZE]) {
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        if ((FIELDS[i].required & 1u << words->type) != 0 && (said & 1u << i) == 0) {
            return say(fault, "missing word", FIELDS[i].key);
        }
    }
    bool lost = (said & 1u << GATEWAY) != 0 && (said & 1u << ADDRESS) == 0;
    return !lost || say(fault, "missing word", "address");
}

bool link_words_parse(const char *text, link_words_t *words, char fault[LINK_FAULT_SIZE]) {
    char word[WORD_SIZE];
    unsigned said = 0;
    *words = (link_words_t){.type = LINK_WIFI, .reset_gpio = -1};
    if (text[0] == '\0') {
        return true;
    }
    next_word(&text, word);
    int32_t type;
    if (!take_name(TYPES, word, &type)) {
        return say(fault, "unknown type", word);
    }
    words->type = (link_type_t)type;
    while (*text == ' ') {
        text++;
        next_word(&text, word);
        if (!take_word(word, words, &said, fault)) {
            return false;
        }
    }
    return check_all_said(words, said, fault);
}
