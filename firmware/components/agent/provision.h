/* SPDX-License-Identifier: Apache-2.0 */
/* Receives what agent/provision.h describes, in pieces, and checks it before it takes effect. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/provision.h"

const agent_provision_t *provision(void);

typedef enum {
    PROVISION_OK,
    PROVISION_UNKNOWN_FIELD,
    PROVISION_BAD_OFFSET, /* a piece is missing or came twice */
    PROVISION_BAD_BASE64,
    PROVISION_TOO_LONG,
    PROVISION_BAD_LENGTH,
    PROVISION_BAD_CRC,
    PROVISION_BAD_VALUE,
    PROVISION_NO_MEMORY,
} provision_status_t;

/* Code that goes into an error reply. It never holds a part of the value. */
const char *provision_status_name(provision_status_t status);

/* Take one piece. Offset 0 starts the field anew. `*received` is the number of bytes there are now. */
provision_status_t provision_add(const char *field, int64_t offset, const char *base64, size_t *received);

/* The field is complete: check length and CRC-32, convert, take effect. An empty field may be set this way
 * without a piece. On any error the staged pieces are dropped and the field keeps its value. */
provision_status_t provision_finish(const char *field, int64_t length, uint32_t crc32);

/* Write the names of the fields, separated by commas, into `text`. */
void provision_field_names(char *text, size_t size);
