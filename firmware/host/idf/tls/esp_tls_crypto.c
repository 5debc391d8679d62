/* SPDX-License-Identifier: Apache-2.0 */
#include "esp_tls_crypto.h"

#include <openssl/evp.h>

#define MBEDTLS_ERR_BASE64_BUFFER_TOO_SMALL (-0x002A)

int esp_crypto_sha1(const unsigned char *input, size_t ilen, unsigned char output[20]) {
    return EVP_Digest(input, ilen, output, NULL, EVP_sha1(), NULL) == 1 ? 0 : -1;
}

int esp_crypto_base64_encode(unsigned char *dst, size_t dlen, size_t *olen, const unsigned char *src,
                             size_t slen) {
    if (slen == 0) {
        *olen = 0;
        return 0;
    }
    const size_t length = (slen + 2) / 3 * 4;
    if (dst == NULL || dlen < length + 1) {
        *olen = length + 1;
        return MBEDTLS_ERR_BASE64_BUFFER_TOO_SMALL;
    }
    *olen = (size_t)EVP_EncodeBlock(dst, src, (int)slen);
    return 0;
}
