/* SPDX-License-Identifier: Apache-2.0 */
/* lwIP's name servers. There is no DHCP here: who is not told a server resolves no name. */
#pragma once

#include "lwip/ip_addr.h"
#include "sdkconfig.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DNS_MAX_SERVERS CONFIG_LWIP_DNS_MAX_SERVERS

/* The server of this rank; NULL, or an address of zeros, for none. */
void dns_setserver(u8_t numdns, const ip_addr_t *dnsserver);
const ip_addr_t *dns_getserver(u8_t numdns);

#ifdef __cplusplus
}
#endif
