/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>

#include "esp_flash_partitions.h"
#include "esp_image_format.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Whether an image may run on a chip of the board's revision; says so where it may not. */
bool bootloader_common_check_chip_revision_validity(const esp_image_header_t *image_header,
                                                    bool check_max_revision);

#ifdef __cplusplus
}
#endif
