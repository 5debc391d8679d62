/* SPDX-License-Identifier: Apache-2.0 */
/* Verbs that tell the board what it needs: provision, provision-end, net. */
#include <string.h>

#include "answer.h"
#include "provision.h"
#include "runner.h"

enum { LINK_TIMEOUT_MS = 30000, LINK_TIMEOUT_MAX_MS = 600000 };

/* Errors name the field, never a part of its value. A misspelt field name could be one: it is not echoed. */
static int answer_provision(provision_status_t status) {
    if (status == PROVISION_UNKNOWN_FIELD) {
        char names[384];
        provision_field_names(names, sizeof(names));
        return answer_error("unknown-field", "fields", names);
    }
    return answer_error(provision_status_name(status), NULL, NULL);
}

int do_provision(int argc, char **argv) {
    int64_t offset = 0;
    size_t received = 0;
    if (argc != 4 || !wire_parse_int(argv[2], &offset)) {
        return answer_usage("provision <field> <offset> <base64>");
    }
    if (!runner_is_idle()) {
        return answer_busy();
    }
    provision_status_t status = provision_add(argv[1], offset, argv[3], &received);
    if (status != PROVISION_OK) {
        return answer_provision(status);
    }
    wire_line_t *line = reply_ok(reply_current());
    wire_line_int(line, "received", (int64_t)received);
    reply_end(reply_current(), line);
    return 0;
}

int do_provision_end(int argc, char **argv) {
    int64_t length = 0;
    uint32_t crc32 = 0;
    if (argc != 4 || !wire_parse_int(argv[2], &length) || !wire_parse_crc(argv[3], &crc32)) {
        return answer_usage("provision-end <field> <length> <crc32>");
    }
    if (!runner_is_idle()) {
        return answer_busy();
    }
    provision_status_t status = provision_finish(argv[1], length, crc32);
    if (status != PROVISION_OK) {
        return answer_provision(status);
    }
    answer_ok();
    return 0;
}

int do_net(int argc, char **argv) {
    int64_t timeout_ms = LINK_TIMEOUT_MS;
    bool up = argc >= 2 && argc <= 3 && strcmp(argv[1], "up") == 0;
    if (!up || (argc == 3 && !wire_parse_int(argv[2], &timeout_ms)) || timeout_ms < 0 ||
        timeout_ms > LINK_TIMEOUT_MAX_MS) {
        return answer_usage("net up [timeout_ms]");
    }
    if (!runner_is_idle()) {
        return answer_busy();
    }
    runner_link_up(pdMS_TO_TICKS((uint32_t)timeout_ms), reply_defer());
    return 0;
}
