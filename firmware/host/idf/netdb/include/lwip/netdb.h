/* SPDX-License-Identifier: Apache-2.0 */
/* Name resolution as lwIP's: the host's own structures and constants, but lwIP's errors and its own way to a
 * name server. docs/explain/host-network.md. */
#pragma once

#include <netdb.h>

#include "lwip/sockets.h"

#ifdef __cplusplus
extern "C" {
#endif

#undef EAI_NONAME
#undef EAI_SERVICE
#undef EAI_FAIL
#undef EAI_MEMORY
#undef EAI_FAMILY
#define EAI_NONAME 200
#define EAI_SERVICE 201
#define EAI_FAIL 202 /* also: no such name, no server, no answer */
#define EAI_MEMORY 203
#define EAI_FAMILY 204

/* One address at most. Blocks the calling task: at once for an address in text and for what is in the table
 * of names, else until the name server answers, at worst 7 s a server. Services are numbers. */
int lwip_getaddrinfo(const char *nodename, const char *servname, const struct addrinfo *hints,
                     struct addrinfo **res);
void lwip_freeaddrinfo(struct addrinfo *ai);

#define getaddrinfo(nodname, servname, hints, res) lwip_getaddrinfo(nodname, servname, hints, res)
#define freeaddrinfo(addrinfo) lwip_freeaddrinfo(addrinfo)

#ifdef __cplusplus
}
#endif
