/* SPDX-License-Identifier: Apache-2.0 */
/* lwIP's api/netdb.c: an answer of one address. */
#include "lwip/netdb.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "resolver.h"

typedef struct {
    int family;
    struct in_addr ipv4;
    struct in6_addr ipv6;
} address_t;

/* What is handed out: one piece, as lwIP's, so that freeing it is one call. */
typedef struct {
    struct addrinfo info;
    struct sockaddr_storage address;
    char name[DNS_MAX_NAME_LENGTH + 1];
} answer_t;

static bool is_family(int family) {
    return family == AF_UNSPEC || family == AF_INET || family == AF_INET6;
}

/* 0 or EAI_SERVICE. */
static int parse_port(const char *servname, uint16_t *port) {
    *port = 0;
    if (servname == NULL) {
        return 0;
    }
    int number = atoi(servname); /* as lwIP's: what follows the digits does not matter */
    if ((number == 0 && servname[0] != '0') || number < 0 || number > UINT16_MAX) {
        return EAI_SERVICE;
    }
    *port = (uint16_t)number;
    return 0;
}

static bool parse_address(const char *text, address_t *address) {
    address->family = AF_INET;
    if (inet_pton(AF_INET, text, &address->ipv4) == 1) {
        return true;
    }
    address->family = AF_INET6;
    return inet_pton(AF_INET6, text, &address->ipv6) == 1;
}

static void local_address(int family, bool any, address_t *address) {
    address->family = family == AF_INET6 ? AF_INET6 : AF_INET;
    address->ipv4.s_addr = htonl(any ? INADDR_ANY : INADDR_LOOPBACK);
    address->ipv6 = any ? in6addr_any : in6addr_loopback;
}

/* Names have IPv4 addresses only here. */
static int look_up(const char *nodename, int family, int flags, address_t *address) {
    if (parse_address(nodename, address)) {
        bool wanted = family == AF_UNSPEC || family == address->family;
        return wanted ? 0 : (flags & AI_NUMERICHOST) != 0 ? EAI_NONAME : EAI_FAIL;
    }
    if ((flags & AI_NUMERICHOST) != 0) {
        return EAI_NONAME;
    }
    address->family = AF_INET;
    bool possible = nodename[0] != '\0' && strlen(nodename) <= DNS_MAX_NAME_LENGTH && family != AF_INET6;
    return possible && resolver_resolve(nodename, &address->ipv4) ? 0 : EAI_FAIL;
}

static void write_address(const address_t *address, uint16_t port, answer_t *answer) {
    if (address->family == AF_INET) {
        struct sockaddr_in *ipv4 = (struct sockaddr_in *)&answer->address;
        *ipv4 =
            (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = address->ipv4};
        answer->info.ai_addrlen = sizeof *ipv4;
    } else {
        struct sockaddr_in6 *ipv6 = (struct sockaddr_in6 *)&answer->address;
        *ipv6 = (struct sockaddr_in6){
            .sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = address->ipv6};
        answer->info.ai_addrlen = sizeof *ipv6;
    }
    answer->info.ai_family = address->family;
    answer->info.ai_addr = (struct sockaddr *)&answer->address;
}

static int make_answer(const char *nodename, const struct addrinfo *hints, const address_t *address,
                       uint16_t port, struct addrinfo **res) {
    answer_t *answer = calloc(1, sizeof *answer);
    if (answer == NULL) {
        return EAI_MEMORY;
    }
    write_address(address, port, answer);
    answer->info.ai_socktype = hints != NULL ? hints->ai_socktype : 0;
    answer->info.ai_protocol = hints != NULL ? hints->ai_protocol : 0;
    if (nodename != NULL) {
        strncpy(answer->name, nodename, DNS_MAX_NAME_LENGTH);
        answer->info.ai_canonname = answer->name;
    }
    *res = &answer->info;
    return 0;
}

int lwip_getaddrinfo(const char *nodename, const char *servname, const struct addrinfo *hints,
                     struct addrinfo **res) {
    if (res == NULL) {
        return EAI_FAIL;
    }
    *res = NULL;
    if (nodename == NULL && servname == NULL) {
        return EAI_NONAME;
    }
    int family = hints != NULL ? hints->ai_family : AF_UNSPEC, flags = hints != NULL ? hints->ai_flags : 0;
    if (!is_family(family)) {
        return EAI_FAMILY;
    }
    uint16_t port;
    address_t address;
    int error = parse_port(servname, &port);
    if (error == 0 && nodename == NULL) {
        local_address(family, (flags & AI_PASSIVE) != 0, &address);
    } else if (error == 0) {
        error = look_up(nodename, family, flags, &address);
    }
    return error == 0 ? make_answer(nodename, hints, &address, port, res) : error;
}

void lwip_freeaddrinfo(struct addrinfo *ai) {
    free(ai);
}
