/* SPDX-License-Identifier: Apache-2.0 */
/* libFuzzer: whatever comes down the line, the command side neither crashes nor believes a wrong checksum. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"
#include "port/port.h"
#include "provision.h"
#include "run.h"
#include "wire.h"

static const char *const CHOICES[] = {"tcp", "tls", "mtls", NULL};
static const bench_parameter_t PARAMETERS[] = {
    {.key = "transport", .type = BENCH_CHOICE, .choices = CHOICES},
    {.key = "qos", .type = BENCH_INT, .def = 1, .min = 0, .max = 2},
};
static const bench_t FUZZED = {.name = "fuzzed", .parameters = PARAMETERS, .parameter_count = 2};
const bench_entry_t bench_table[] = {{&FUZZED, ""}};
const size_t bench_table_length = 1;

esp_err_t port_set_time(int64_t utc_us) {
    EXPECT(utc_us >= 0);
    return ESP_OK;
}

/* Where run.c would log and abort there is a defect of a bench, which no input can cause. */
uint32_t esp_log_timestamp(void) {
    abort();
}

void esp_log_write(int level, const char *tag, const char *format, ...) {
    (void)level;
    (void)tag;
    (void)format;
    abort();
}

static void check_parsed(const char *original, const wire_command_t *command) {
    const char *star = strrchr(original, '*');
    EXPECT(strlen(command->tag) < WIRE_TAG_SIZE);
    if (original[0] == '#') { /* tagged: the checksum was there and right */
        uint32_t given = 0;
        EXPECT(star != NULL && wire_parse_crc(star + 1, &given));
        EXPECT(given == wire_crc32(0, original, (size_t)(star - 1 - original)));
        EXPECT(given == command->crc);
    }
}

static void use_as_provision(char *name, char *text) {
    static const char *const fields[] = {"psk", "ca_pem", "utc_us", "broker_tcp_port"};
    size_t received = 0;
    int64_t offset = 0;
    const char *field = fields[(unsigned char)name[0] % 4];
    if (wire_parse_int(name, &offset)) {
        provision_add(field, offset, text, &received);
    }
    provision_add(field, 0, text, &received);
    EXPECT(received <= AGENT_PEM_SIZE);
    provision_finish(field, (int64_t)received, (uint32_t)offset);
    EXPECT(strlen(provision()->psk) < AGENT_PSK_SIZE && strlen(provision()->ca_pem) < AGENT_PEM_SIZE);
}

static void use_as_parameter(const char *key, const char *value) {
    bench_run_t run;
    bool valid = false;
    char buffer[WIRE_LINE_SIZE];
    wire_line_t line;
    run_init(&run, &bench_table[0]);
    run_set(&run, key, value, &valid);
    EXPECT(run.values[0] >= 0 && run.values[0] <= 2 && run.values[1] >= 0 && run.values[1] <= 2);
    wire_line_start(&line, buffer, sizeof(buffer), 1, 'R');
    wire_line_text(&line, "text", value);
    run_write_case(&line, &run);
    if (wire_line_finish(&line)) {
        EXPECT(strchr(buffer + 1, '@') == NULL && strchr(buffer, '\n') == buffer + line.length - 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char line[WIRE_COMMAND_SIZE];
    char original[WIRE_COMMAND_SIZE];
    size_t length = size < sizeof(line) - 1 ? size : sizeof(line) - 1;
    memcpy(line, data, length);
    line[length] = '\0';
    strcpy(original, line);
    wire_command_t command;
    if (wire_command_parse(line, &command) == WIRE_COMMAND_OK) {
        check_parsed(original, &command);
    }
    char *rest = strchr(original, ' ');
    if (rest != NULL) {
        *rest++ = '\0';
        use_as_provision(original, rest);
        use_as_parameter(original, rest);
    }
    return 0;
}
