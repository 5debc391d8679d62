/* SPDX-License-Identifier: Apache-2.0 */
// Of Mbed TLS what esp_tls.h lets firmware see.
#pragma once

#include "mbedtls/private_access.h"

typedef struct mbedtls_ssl_session {
    unsigned char MBEDTLS_PRIVATE(master)[48]; // of TLS 1.2; a resumed session keeps it
    void *openssl;                             // the host's own: SSL_SESSION
} mbedtls_ssl_session;
