/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/* The product says here where a reading is; nothing happens unless the bench reading_published runs. */
void reading_began(uint32_t seq);
void reading_acknowledged(uint32_t seq);
