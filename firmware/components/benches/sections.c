/* SPDX-License-Identifier: Apache-2.0 */
/* sections: where the running image lies, section by section, as its linker laid it out.
 *
 *   text_bytes, rodata_bytes   code and constants that stay in flash
 *   iram_bytes                 code that is in RAM while the flash is written, and in interrupts
 *   data_bytes, bss_bytes      variables: with a value at the start, and without
 */
#include "agent/agent.h"
#include "agent/bench.h"

static esp_err_t run(const bench_run_t *bench_run, bench_samples_t *samples) {
    (void)bench_run;
    agent_sections_t sections;
    esp_err_t err = agent_sections(&sections);
    if (err != ESP_OK) {
        return bench_fail(samples, BENCH_OWNER_CONFIGURATION, err,
                          "this target has no linker script of a chip");
    }
    const uint32_t bytes[] = {sections.text_bytes, sections.rodata_bytes, sections.iram_bytes,
                              sections.data_bytes, sections.bss_bytes};
    err = bench_samples_begin(samples, 1, 0);
    for (size_t column = 0; err == ESP_OK && column < sizeof(bytes) / sizeof(bytes[0]); column++) {
        bench_samples_set(samples, 0, column, bytes[column]);
    }
    return err;
}

static const char *const COLUMNS[] = {"text_bytes", "rodata_bytes", "iram_bytes", "data_bytes", "bss_bytes"};

const bench_t bench_sections = {
    .name = "sections",
    .columns = COLUMNS,
    .column_count = sizeof(COLUMNS) / sizeof(COLUMNS[0]),
    .run = run,
};
