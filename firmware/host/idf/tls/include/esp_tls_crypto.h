/* SPDX-License-Identifier: Apache-2.0 */
// What ESP-IDF's components have of digests and base 64, with Mbed TLS's return values.
#pragma once

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

int esp_crypto_sha1(const unsigned char *input, size_t ilen, unsigned char output[20]);
// 0; -0x002A where dlen is too small, and *olen is then what it takes with the NUL. Else *olen is without it.
int esp_crypto_base64_encode(unsigned char *dst, size_t dlen, size_t *olen, const unsigned char *src,
                             size_t slen);

#ifdef __cplusplus
}
#endif
