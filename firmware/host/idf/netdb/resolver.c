/* SPDX-License-Identifier: Apache-2.0 */
/* lwIP's dns.c: servers by rank; a server that does not answer is asked again after 1, 1 and 2 s and given up
 * after 3 s more (DNS_MAX_RETRIES 4, a timer of 1 s); then the next, as after an error that a server tells.
 */
#include "resolver.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <string.h>

static pthread_mutex_t s_lock = PTHREAD_MUTEX_INITIALIZER;
static ip_addr_t s_servers[DNS_MAX_SERVERS];

int ipaddr_aton(const char *cp, ip_addr_t *addr) {
    struct in_addr ipv4;
    if (cp == NULL || inet_pton(AF_INET, cp, &ipv4) != 1) {
        return 0;
    }
    if (addr != NULL) {
        *addr = (ip_addr_t){.u_addr.ip4.addr = ipv4.s_addr, .type = IPADDR_TYPE_V4};
    }
    return 1;
}

char *ipaddr_ntoa_r(const ip_addr_t *addr, char *buf, int buflen) {
    return (char *)(uintptr_t)inet_ntop(AF_INET, &addr->u_addr.ip4.addr, buf, (socklen_t)buflen);
}

char *ipaddr_ntoa(const ip_addr_t *addr) {
    static char text[IPADDR_STRLEN_MAX];
    return ipaddr_ntoa_r(addr, text, sizeof text);
}

void dns_setserver(u8_t numdns, const ip_addr_t *dnsserver) {
    if (numdns < DNS_MAX_SERVERS) {
        pthread_mutex_lock(&s_lock);
        s_servers[numdns] = dnsserver != NULL ? *dnsserver : (ip_addr_t){0};
        pthread_mutex_unlock(&s_lock);
    }
}

const ip_addr_t *dns_getserver(u8_t numdns) {
    static const ip_addr_t none;
    return numdns < DNS_MAX_SERVERS ? &s_servers[numdns] : &none;
}

static query_result_t ask_server(const char *name, struct in_addr server, struct in_addr *address,
                                 uint32_t *ttl_s) {
    static const int waits_ms[] = {1000, 1000, 2000, 3000};
    query_t *query = query_open(name, server);
    query_result_t result = QUERY_NO_ANSWER;
    if (query == NULL) {
        return QUERY_NO_ADDRESS;
    }
    for (size_t i = 0; i < sizeof waits_ms / sizeof waits_ms[0] && result == QUERY_NO_ANSWER; i++) {
        result = query_ask(query, waits_ms[i], address, ttl_s);
    }
    query_close(query);
    return result;
}

static bool ask_servers(const char *name, struct in_addr *address) {
    ip_addr_t servers[DNS_MAX_SERVERS];
    pthread_mutex_lock(&s_lock);
    memcpy(servers, s_servers, sizeof servers);
    pthread_mutex_unlock(&s_lock);
    query_result_t result = QUERY_NO_ANSWER;
    for (int i = 0; i < DNS_MAX_SERVERS && result >= QUERY_ERROR; i++) {
        uint32_t ttl_s = 0;
        const struct in_addr server = {.s_addr = servers[i].u_addr.ip4.addr};
        if (server.s_addr != INADDR_ANY) {
            result = ask_server(name, server, address, &ttl_s);
        }
        if (result == QUERY_FOUND) {
            table_add(name, *address, ttl_s);
        }
    }
    return result == QUERY_FOUND;
}

bool resolver_resolve(const char *name, struct in_addr *address) {
    if (strcmp(name, "localhost") == 0) {
        address->s_addr = htonl(INADDR_LOOPBACK);
        return true;
    }
    return table_find(name, address) || ask_servers(name, address);
}
