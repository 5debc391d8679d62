/* SPDX-License-Identifier: Apache-2.0 */
#include "identity.h"

#include <stdio.h>
#include <string.h>

#include "agent/agent.h"
#include "answer.h"
#include "esp_err.h"
#include "esp_log.h"
#include "esp_random.h"
#include "esp_system.h"
#include "port/port.h"
#include "record.h"
#include "sdkconfig.h"
#include "sealed.h"

static const char *TAG = "agent";
static identity_t s_identity;

static const char *reset_reason_name(esp_reset_reason_t reason) {
    switch (reason) {
    case ESP_RST_POWERON:
        return "POWERON";
    case ESP_RST_EXT:
        return "EXT";
    case ESP_RST_SW:
        return "SW";
    case ESP_RST_PANIC:
        return "PANIC";
    case ESP_RST_INT_WDT:
        return "INT_WDT";
    case ESP_RST_TASK_WDT:
        return "TASK_WDT";
    case ESP_RST_WDT:
        return "WDT";
    case ESP_RST_DEEPSLEEP:
        return "DEEPSLEEP";
    case ESP_RST_BROWNOUT:
        return "BROWNOUT";
    case ESP_RST_SDIO:
        return "SDIO";
    case ESP_RST_USB:
        return "USB";
    case ESP_RST_JTAG:
        return "JTAG";
    case ESP_RST_EFUSE:
        return "EFUSE";
    case ESP_RST_PWR_GLITCH:
        return "PWR_GLITCH";
    case ESP_RST_CPU_LOCKUP:
        return "CPU_LOCKUP";
    default:
        return "OTHER";
    }
}

static void to_hex(const uint8_t digest[32], char hex[IDENTITY_HEX_SIZE]) {
    for (size_t i = 0; i < 32; i++) {
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    }
}

void identity_init(void) {
    port_app_t app = port_app();
    uint8_t digest[32] = {0};
    esp_err_t err = port_firmware_sha256(digest);
    if (err != ESP_OK) {
        /* All zeroes never equal a built image, so the host refuses to measure. */
        ESP_LOGE(TAG, "cannot read the SHA-256 of the running image: %s", esp_err_to_name(err));
    }
    to_hex(digest, s_identity.firmware_sha256);
    to_hex(app.elf_sha256, s_identity.elf_sha256);
    s_identity.project = app.project;
    s_identity.version = app.version;
    s_identity.idf_version = app.idf_version;
    s_identity.target = CONFIG_IDF_TARGET;
    s_identity.reset_reason = reset_reason_name(esp_reset_reason());
    s_identity.boot = sealed() ? sealed_seed() : esp_random();
}

const identity_t *identity(void) {
    return &s_identity;
}

void identity_say_hello(void) {
    wire_line_t *line = record_begin('H');
    wire_line_int(line, "proto_min", WIRE_PROTOCOL_MIN);
    wire_line_int(line, "proto_max", WIRE_PROTOCOL_MAX);
    wire_line_crc(line, "boot", s_identity.boot);
    wire_line_text(line, "agent", AGENT_VERSION);
    wire_line_text(line, "project", s_identity.project);
    wire_line_text(line, "version", s_identity.version);
    wire_line_text(line, "idf", s_identity.idf_version);
    wire_line_text(line, "target", s_identity.target);
    wire_line_text(line, "reset_reason", s_identity.reset_reason);
    wire_line_text(line, "firmware_sha256", s_identity.firmware_sha256);
    wire_line_text(line, "elf_sha256", s_identity.elf_sha256);
    write_benches(line);
    record_end(line);
}
