/* SPDX-License-Identifier: Apache-2.0 */
/* Which image runs here, and which boot of it this is. */
#pragma once

#include <stdint.h>

enum { IDENTITY_HEX_SIZE = 65 };

typedef struct {
    char firmware_sha256[IDENTITY_HEX_SIZE]; /* of the running app image: the digest appended to its .bin */
    char elf_sha256[IDENTITY_HEX_SIZE];
    const char *project;
    const char *version;
    const char *idf_version;
    const char *target;
    const char *reset_reason;
    uint32_t boot; /* random, so that two boots are told apart even if the first hello got lost */
} identity_t;

/* Read it once. Takes some 100 ms on a chip, which reads the image through. */
void identity_init(void);
const identity_t *identity(void);

/* Send the hello line. */
void identity_say_hello(void);
