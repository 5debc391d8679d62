/* SPDX-License-Identifier: Apache-2.0 */
/* The agent beside a program of one's own, and benches of that program.
 *
 *     void app_main(void) {
 *         ESP_ERROR_CHECK(esp_hil_start(NULL));
 *         …
 *     }
 *
 * docs/start/add-the-component.md says how it is added, docs/start/write-a-benchmark.md what a bench is: all
 * names of that page are here with hil_ or HIL_ before them.
 */
#pragma once

#include <stdbool.h>

#include "esp_err.h"
#include "freertos/FreeRTOS.h"
#include "sdkconfig.h"

/* The declarations of the firmware's own benches, under names that are nobody else's. */
#include "esp_hil_names.h"

#include "../../components/agent/include/agent/bench.h"
#include "../../components/agent/include/agent/register.h"
#include "../../components/agent/include/agent/watch.h"

#include "esp_hil_names_end.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What the agent may take over of the program. */
typedef struct {
    bool hold_log;      /* log text is held while a bench runs, and printed afterwards */
    bool take_network;  /* `net up` connects where there is no address; only with CONFIG_HIL_TAKE_NETWORK */
    bool set_clock;     /* the time of day that the host tells is set */
    bool confirm_image; /* the first command confirms an image that waits for that (an update over the air) */
} esp_hil_config_t;

/* Options that are off are not defined. */
#ifdef CONFIG_HIL_HOLD_LOG
#define ESP_HIL_HOLD_LOG true
#else
#define ESP_HIL_HOLD_LOG false
#endif
#ifdef CONFIG_HIL_TAKE_NETWORK
#define ESP_HIL_TAKE_NETWORK true
#else
#define ESP_HIL_TAKE_NETWORK false
#endif
#ifdef CONFIG_HIL_SET_CLOCK
#define ESP_HIL_SET_CLOCK true
#else
#define ESP_HIL_SET_CLOCK false
#endif
#ifdef CONFIG_HIL_CONFIRM_IMAGE
#define ESP_HIL_CONFIRM_IMAGE true
#else
#define ESP_HIL_CONFIRM_IMAGE false
#endif

/* As menuconfig says ("HIL agent"). */
#define ESP_HIL_CONFIG_DEFAULT()                                                                             \
    {                                                                                                        \
        .hold_log = ESP_HIL_HOLD_LOG, .take_network = ESP_HIL_TAKE_NETWORK, .set_clock = ESP_HIL_SET_CLOCK,  \
        .confirm_image = ESP_HIL_CONFIRM_IMAGE,                                                              \
    }

/* Start the agent's two tasks, which wait for the host's commands, and return. NULL is
 * ESP_HIL_CONFIG_DEFAULT().
 *
 * Call it from app_main(), before or after the network is there: nothing of the program's is initialised, set
 * or disconnected but what `config` names. Returns ESP_ERR_INVALID_STATE where it was called before,
 * ESP_ERR_NO_MEM, or what the console's driver returns.
 */
esp_err_t esp_hil_start(const esp_hil_config_t *config);

/* Register a bench, in a C file of any component that requires esp_hil, at the beginning of a line:
 *
 *     HIL_BENCH(pump_start, .columns = COLUMNS, .column_count = 2, .run = run);
 *
 * defines `const hil_bench_t hil_bench_pump_start`, and a pointer in a section that the agent reads from its
 * start to its end. The build finds the line, makes the bench's ruler hash of the agent's sources and of this
 * file, and has the linker take the file in. A bench that the build has not found does not link:
 * hil_bench_ruler_<stem> is missing. */
#define HIL_BENCH(stem, ...)                                                                                 \
    extern const char hil_bench_ruler_##stem[];                                                              \
    extern const hil_bench_t hil_bench_##stem;                                                               \
    static const hil_bench_entry_t hil_bench_entry_##stem = {&hil_bench_##stem, hil_bench_ruler_##stem};     \
    /* aligned as what it is: a compiler may align a larger object more, and leave a gap */                  \
    static const hil_bench_entry_t *const hil_bench_registered_##stem                                        \
        __attribute__((section("hil_benches"), used, aligned(sizeof(void *)))) = &hil_bench_entry_##stem;    \
    const hil_bench_t hil_bench_##stem = {.name = #stem, __VA_ARGS__}

#ifdef __cplusplus
}
#endif
