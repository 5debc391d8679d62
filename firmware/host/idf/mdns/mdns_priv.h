/* SPDX-License-Identifier: Apache-2.0 */
/* One lock for services and searches; the task "mdns" has the socket. Names are as ns_name_ntop() has them.
 */
#pragma once
#include <arpa/nameser.h>
#include <netinet/in.h>

#include "mdns.h"

#define MDNS_MESSAGE_BYTES 1460
#define MDNS_HOST_TTL_S 120
#define MDNS_TTL_S 4500
#define MDNS_FLUSH 0x8000 /* of a class: in an answer the only one of its name, in a question unicast */

typedef struct {
    uint8_t bytes[MDNS_MESSAGE_BYTES];
    size_t length;
    uint16_t counts[4]; /* questions, answers, authorities, additional records */
} mdns_message_t;

/* Joins texts to a name: each of the first ones is a label, whatever is in it; false where it is none. */
bool mdns_name(char name[NS_MAXDNAME], const char *instance, const char *type, const char *proto);
/* The first label of a name as it was before it was quoted; to be freed. */
char *mdns_label(const char *name);
void mdns_begin(mdns_message_t *message, uint16_t id, uint16_t flags);
/* What does not fit is left out. Records go section by section. */
void mdns_put_question(mdns_message_t *message, const char *name, uint16_t type);
void mdns_put_record(mdns_message_t *message, ns_sect section, const char *name, uint16_t type,
                     uint16_t class, uint32_t ttl_s, const void *data, size_t bytes);

/* mdns.c: the lock, and what is sent to all; both only where mdns_init() was called. */
bool mdns_lock(void);
void mdns_unlock(void);
void mdns_send_all(mdns_message_t *message);
struct in_addr mdns_own_address(void);

/* services.c; with the lock held */
void mdns_services_announce(uint32_t ttl_s);
/* What is to be answered; false: nothing. */
bool mdns_services_answer(ns_msg *query, bool legacy, mdns_message_t *answer);
void mdns_services_free(void);

/* searches.c; with the lock held */
void mdns_searches_take(ns_msg *answer);
void mdns_searches_tick(void);
