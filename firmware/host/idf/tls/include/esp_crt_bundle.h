/* SPDX-License-Identifier: Apache-2.0 */
// ESP-IDF's bundle of authorities. Here they are the machine's own (/etc/ssl/certs), or those of the file
// that SSL_CERT_FILE names; what a connection is then verified against is real. esp_crt_bundle_set() is not
// there.
#pragma once

#include "esp_err.h"

#ifdef __cplusplus
extern "C" {
#endif

// To be given as crt_bundle_attach.
esp_err_t esp_crt_bundle_attach(void *conf);

#ifdef __cplusplus
}
#endif
