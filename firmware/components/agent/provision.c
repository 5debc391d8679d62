/* SPDX-License-Identifier: Apache-2.0 */
#include "provision.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "agent/bench.h"
#include "port/port.h"
#include "wire.h"

typedef enum { FIELD_PEM, FIELD_TEXT, FIELD_PORT, FIELD_TIME } field_type_t;

typedef struct {
    const char *name;
    field_type_t type;
    size_t offset; /* in agent_provision_t */
    size_t size;   /* of a text, NUL included; of a number, what its decimal digits need */
} field_t;

#define PEM(member)                                                                                          \
    { #member, FIELD_PEM, offsetof(agent_provision_t, member), AGENT_PEM_SIZE }
#define TEXT(member)                                                                                         \
    { #member, FIELD_TEXT, offsetof(agent_provision_t, member), sizeof(((agent_provision_t *)0)->member) }
#define PORT(member)                                                                                         \
    { #member, FIELD_PORT, offsetof(agent_provision_t, member), sizeof("65535") }
#define TIME(member)                                                                                         \
    { #member, FIELD_TIME, offsetof(agent_provision_t, member), sizeof("9223372036854775807") }

static const field_t FIELDS[] = {
    PEM(ca_pem),
    PEM(client_cert_pem),
    PEM(client_key_pem),
    TEXT(link),
    TEXT(ssid),
    TEXT(psk),
    TIME(utc_us),
    TEXT(broker_host),
    PORT(broker_tcp_port),
    PORT(broker_tls_port),
    PORT(broker_mtls_port),
    PORT(broker_password_port),
    TEXT(mqtt_username),
    TEXT(mqtt_password),
    TEXT(peer_host),
    TEXT(peer_name),
    TEXT(dns_host),
    PORT(peer_port),
    PORT(peer_tls_port),
};
enum { FIELD_COUNT = sizeof(FIELDS) / sizeof(FIELDS[0]) };

static agent_provision_t s_provision = {.ca_pem = "", .client_cert_pem = "", .client_key_pem = ""};

/* The field that is being received; in steps, so that a certificate of another length, which each run has,
 * mostly leaves the heap as it was. */
enum { STAGED_STEP = 512 };
static const field_t *s_field;
static size_t s_length;
static char *s_staged; /* s_room bytes, NULs behind the text; NULL before the first piece */
static size_t s_room;

const agent_provision_t *provision(void) {
    return &s_provision;
}

const char *provision_status_name(provision_status_t status) {
    static const char *const names[] = {
        [PROVISION_OK] = "ok",
        [PROVISION_UNKNOWN_FIELD] = "unknown-field",
        [PROVISION_BAD_OFFSET] = "bad-offset",
        [PROVISION_BAD_BASE64] = "bad-base64",
        [PROVISION_TOO_LONG] = "too-long",
        [PROVISION_BAD_LENGTH] = "bad-length",
        [PROVISION_BAD_CRC] = "bad-field-crc",
        [PROVISION_BAD_VALUE] = "bad-value",
        [PROVISION_NO_MEMORY] = "no-memory",
    };
    return names[status];
}

static const field_t *find_field(const char *name) {
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        if (strcmp(FIELDS[i].name, name) == 0) {
            return &FIELDS[i];
        }
    }
    return NULL;
}

/* Secrets do not stay in memory that others get. */
static void forget(char *text, size_t size) {
    if (text != NULL) {
        memset(text, 0, size);
        __asm__ volatile("" : : "r"(text) : "memory"); /* a compiler may drop what nobody reads */
        free(text);
    }
}

static void clear_staged(const field_t *next) {
    forget(s_staged, s_room);
    s_staged = NULL;
    s_room = 0;
    s_field = next;
    s_length = 0;
}

/* Have room for `length` bytes and a NUL. */
static bool make_room(size_t length) {
    size_t wanted = (length / STAGED_STEP + 1) * STAGED_STEP;
    if (s_room >= wanted) {
        return true;
    }
    char *larger = calloc(1, wanted);
    if (larger == NULL) {
        return false;
    }
    if (s_staged != NULL) {
        memcpy(larger, s_staged, s_length);
    }
    forget(s_staged, s_room);
    s_staged = larger;
    s_room = wanted;
    return true;
}

provision_status_t provision_add(const char *name, int64_t offset, const char *base64, size_t *received) {
    const field_t *field = find_field(name);
    if (field == NULL) {
        return PROVISION_UNKNOWN_FIELD;
    }
    if (offset == 0) {
        clear_staged(field);
    }
    if (field != s_field || offset != (int64_t)s_length) {
        return PROVISION_BAD_OFFSET;
    }
    uint8_t piece[WIRE_COMMAND_SIZE * 3 / 4];
    int length = wire_base64_decode(base64, piece, sizeof(piece));
    if (length < 0) {
        return PROVISION_BAD_BASE64;
    }
    if (s_length + (size_t)length >= field->size) { /* room for the NUL */
        return PROVISION_TOO_LONG;
    }
    bool fits = make_room(s_length + (size_t)length);
    if (fits) {
        memcpy(s_staged + s_length, piece, (size_t)length);
        s_length += (size_t)length;
        *received = s_length;
    }
    memset(piece, 0, sizeof(piece));
    return fits ? PROVISION_OK : PROVISION_NO_MEMORY;
}

static provision_status_t take_number(const field_t *field) {
    int64_t value = 0;
    int64_t max = field->type == FIELD_PORT ? UINT16_MAX : INT64_MAX;
    if (!wire_parse_int(s_staged, &value) || value < 0 || value > max) {
        return PROVISION_BAD_VALUE;
    }
    void *member = (char *)&s_provision + field->offset;
    if (field->type == FIELD_PORT) {
        *(uint16_t *)member = (uint16_t)value;
        return PROVISION_OK;
    }
    *(int64_t *)member = value;
    return port_set_time(value) == ESP_OK ? PROVISION_OK : PROVISION_BAD_VALUE;
}

static provision_status_t take_text(const field_t *field) {
    if (memchr(s_staged, '\0', s_length) != NULL) {
        return PROVISION_BAD_VALUE;
    }
    char *member = (char *)&s_provision + field->offset;
    memset(member, 0, field->size);
    memcpy(member, s_staged, s_length);
    return PROVISION_OK;
}

/* What was staged becomes the value, where it lies. */
static provision_status_t take_pem(const field_t *field) {
    const char **member = (const char **)(void *)((char *)&s_provision + field->offset);
    if (memchr(s_staged, '\0', s_length) != NULL) {
        return PROVISION_BAD_VALUE;
    }
    if (**member != '\0') {
        forget((char *)*member, strlen(*member));
    }
    *member = s_length > 0 ? s_staged : "";
    if (s_length > 0) {
        s_staged = NULL;
        s_room = 0;
    }
    return PROVISION_OK;
}

static provision_status_t check_and_take(const field_t *field, int64_t length, uint32_t crc32) {
    if (length != (int64_t)s_length) {
        return PROVISION_BAD_LENGTH;
    }
    if (!make_room(0)) { /* an empty field came without a piece */
        return PROVISION_NO_MEMORY;
    }
    if (wire_crc32(0, s_staged, s_length) != crc32) {
        return PROVISION_BAD_CRC;
    }
    if (field->type == FIELD_PEM) {
        return take_pem(field);
    }
    return field->type == FIELD_TEXT ? take_text(field) : take_number(field);
}

provision_status_t provision_finish(const char *name, int64_t length, uint32_t crc32) {
    const field_t *field = find_field(name);
    if (field == NULL) {
        return PROVISION_UNKNOWN_FIELD;
    }
    if (field != s_field) {
        clear_staged(field);
    }
    provision_status_t status = check_and_take(field, length, crc32);
    clear_staged(NULL);
    return status;
}

void provision_field_names(char *text, size_t size) {
    size_t length = 0;
    for (size_t i = 0; i < FIELD_COUNT && length < size; i++) {
        length += (size_t)snprintf(text + length, size - length, "%s%s", i > 0 ? "," : "", FIELDS[i].name);
    }
}

const agent_provision_t *bench_provision(const bench_run_t *run) {
    (void)run;
    return provision();
}

int64_t bench_wall_clock_us(void) {
    struct timeval now;
    gettimeofday(&now, NULL);
    return (int64_t)now.tv_sec * 1000000 + now.tv_usec;
}
