/* SPDX-License-Identifier: Apache-2.0 */
/* lwIP's addresses, as far as firmware hands them on; IPv4 only. */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef uint8_t u8_t;
typedef uint32_t u32_t;

typedef struct ip4_addr {
    u32_t addr; /* network byte order */
} ip4_addr_t;

typedef struct ip_addr {
    union {
        ip4_addr_t ip4;
    } u_addr;
    u8_t type;
} ip_addr_t;

#define IPADDR_TYPE_V4 0U
#define IPADDR_STRLEN_MAX 46

/* 1 for a dotted IPv4 address, 0 for anything else. */
int ipaddr_aton(const char *cp, ip_addr_t *addr);
/* NULL where it does not fit. */
char *ipaddr_ntoa_r(const ip_addr_t *addr, char *buf, int buflen);
/* Kept until the next call. */
char *ipaddr_ntoa(const ip_addr_t *addr);

#ifdef __cplusplus
}
#endif
