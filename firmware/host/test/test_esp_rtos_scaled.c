/* SPDX-License-Identifier: Apache-2.0 */
/* rtos/clocks.c of an image with CONFIG_PM_ENABLE: it builds, and what counts cycles is refused as the
 * configuration's fault. */
#include <stdarg.h>

#include "idf_check.h"
#include "rtos/clocks.h"
#include "samples_private.h"

static bench_owner_t s_owner;
static char s_sentence[200];

esp_err_t __wrap_bench_fail(bench_samples_t *samples, bench_owner_t owner, esp_err_t status,
                            const char *format, ...);

esp_err_t __wrap_bench_fail(bench_samples_t *samples, bench_owner_t owner, esp_err_t status,
                            const char *format, ...) {
    (void)samples;
    va_list args;
    va_start(args, format);
    vsnprintf(s_sentence, sizeof(s_sentence), format, args);
    va_end(args);
    s_owner = owner;
    return status;
}

void app_main(void) {
    static bench_samples_t samples;
    rtos_clocks_t clocks = {0};
    CHECK_EQUAL(rtos_clocks_calibrate(&clocks, &samples), ESP_ERR_NOT_SUPPORTED);
    CHECK_EQUAL(s_owner, BENCH_OWNER_CONFIGURATION);
    CHECK(strstr(s_sentence, "CONFIG_PM_ENABLE") != NULL);
    exit(0);
}
