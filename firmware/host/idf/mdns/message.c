/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mdns_priv.h"

/* All but letters, digits, - and _ by their numbers: a dot in an instance's name is none between labels. */
static int quoted(char *out, size_t bytes, const char *label) {
    int length = 0;
    for (; *label != '\0'; label++) {
        unsigned char c = (unsigned char)*label;
        const char *format = isalnum(c) || c == '-' || c == '_' ? "%c" : "\\%03u";
        int more = snprintf(out + length, bytes - (size_t)length, format, c);
        if (more < 0 || (size_t)(length + more) >= bytes) {
            return -1;
        }
        length += more;
    }
    return length;
}

bool mdns_name(char name[NS_MAXDNAME], const char *instance, const char *type, const char *proto) {
    const char *labels[] = {instance, type, proto, "local"};
    char text[NS_MAXDNAME];
    uint8_t packed[NS_MAXCDNAME];
    size_t length = 0;
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) {
        if (labels[i] == NULL) {
            continue;
        }
        int more = quoted(text + length, sizeof text - length - 1, labels[i]);
        if (more < 0) {
            return false;
        }
        length += (size_t)more;
        text[length++] = '.';
    }
    text[length - 1] = '\0';
    return ns_name_pton(text, packed, sizeof packed) >= 0 && ns_name_ntop(packed, name, NS_MAXDNAME) > 0;
}

char *mdns_label(const char *name) {
    uint8_t packed[NS_MAXCDNAME];
    return ns_name_pton(name, packed, sizeof packed) < 0 ? NULL
                                                         : strndup((const char *)packed + 1, packed[0]);
}

void mdns_begin(mdns_message_t *message, uint16_t id, uint16_t flags) {
    memset(message, 0, sizeof *message);
    ns_put16(id, message->bytes);
    ns_put16(flags, message->bytes + 2);
    message->length = NS_HFIXEDSZ;
}

/* Name, type and class; the length behind them, 0 where they do not fit with `more` bytes. */
static size_t put_head(mdns_message_t *message, const char *name, uint16_t type, uint16_t class,
                       size_t more) {
    uint8_t *at = message->bytes + message->length;
    size_t left = MDNS_MESSAGE_BYTES - message->length;
    int bytes = ns_name_compress(name, at, left, NULL, NULL);
    if (bytes < 0 || (size_t)bytes + NS_QFIXEDSZ + more > left) {
        return 0;
    }
    ns_put16(type, at + bytes);
    ns_put16(class, at + bytes + 2);
    return message->length + (size_t)bytes + NS_QFIXEDSZ;
}

static void count(mdns_message_t *message, ns_sect section) {
    ns_put16(++message->counts[section], message->bytes + 4 + 2 * section);
}

void mdns_put_question(mdns_message_t *message, const char *name, uint16_t type) {
    size_t end = put_head(message, name, type, ns_c_in, 0);
    if (end > 0) {
        message->length = end;
        count(message, ns_s_qd);
    }
}

void mdns_put_record(mdns_message_t *message, ns_sect section, const char *name, uint16_t type,
                     uint16_t class, uint32_t ttl_s, const void *data, size_t bytes) {
    size_t end = put_head(message, name, type, class, 6 + bytes);
    if (end > 0) {
        ns_put32(ttl_s, message->bytes + end);
        ns_put16((uint16_t)bytes, message->bytes + end + 4);
        memcpy(message->bytes + end + 6, data, bytes);
        message->length = end + 6 + bytes;
        count(message, section);
    }
}
