/* SPDX-License-Identifier: Apache-2.0 */
/* lwIP's resolver on the host: servers, table of names, queries. */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>

#include "lwip/dns.h"

#define DNS_TABLE_SIZE 4
#define DNS_MAX_NAME_LENGTH 256

/* The first address of `name`. False: there is no such name, no server, or none that answered. */
bool resolver_resolve(const char *name, struct in_addr *address);

/* query.c: one name, one server, asked as often as query_ask() is called; any of the answers counts. */
typedef enum {
    QUERY_FOUND,
    QUERY_NO_ADDRESS, /* the name has none */
    QUERY_ERROR,      /* the server says: no such name, or refuses */
    QUERY_NO_ANSWER,
} query_result_t;
typedef struct query query_t;
/* NULL where there is no memory or no socket, or `name` cannot be one. */
query_t *query_open(const char *name, struct in_addr server);
query_result_t query_ask(query_t *query, int wait_ms, struct in_addr *address, uint32_t *ttl_s);
void query_close(query_t *query);

/* table.c: what servers answered, until it expires. */
bool table_find(const char *name, struct in_addr *address);
void table_add(const char *name, struct in_addr address, uint32_t ttl_s);
