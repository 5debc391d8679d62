/* SPDX-License-Identifier: Apache-2.0 */
/* lwIP's names of what is in an in6_addr (un.u32_addr, un.u8_addr): the C library's own, renamed. */
#pragma once
#define __in6_u un
#define __u6_addr8 u8_addr
#define __u6_addr32 u32_addr
#include_next <netinet/in.h>
