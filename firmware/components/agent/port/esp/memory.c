/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/agent.h"
#include "port/port.h"

/* Of ESP-IDF's linker scripts (components/esp_system/ld), for each chip. */
extern char _text_start, _text_end, _rodata_start, _rodata_end, _iram_start, _iram_end, _data_start,
    _data_end, _bss_start, _bss_end;

static uint32_t between(const char *start, const char *end) {
    return (uint32_t)((uintptr_t)end - (uintptr_t)start);
}

const char *port_memory_prefix(void) {
    return "";
}

esp_err_t agent_sections(agent_sections_t *sections) {
    *sections = (agent_sections_t){
        .text_bytes = between(&_text_start, &_text_end),
        .rodata_bytes = between(&_rodata_start, &_rodata_end),
        .iram_bytes = between(&_iram_start, &_iram_end),
        .data_bytes = between(&_data_start, &_data_end),
        .bss_bytes = between(&_bss_start, &_bss_end),
    };
    return ESP_OK;
}
