/* SPDX-License-Identifier: Apache-2.0 */
/* lwIP's getaddrinfo() where nobody has to be asked, and its errors. tests/firmware/test_host_netdb.py asks a
 * server.
 */
#include <arpa/inet.h>

#include "esp_timer.h"
#include "expect.h"
#include "lwip/dns.h"
#include "lwip/netdb.h"

static int error_of(const char *node, const char *service, int family, int flags) {
    const struct addrinfo hints = {.ai_family = family, .ai_flags = flags, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    int error = getaddrinfo(node, service, &hints, &found);
    EXPECT((error == 0) == (found != NULL));
    freeaddrinfo(found);
    return error;
}

static void check_address(const char *node, const char *service, int family, const char *wanted, int port) {
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_protocol = 6};
    struct addrinfo *found = NULL;
    char text[INET6_ADDRSTRLEN];
    EXPECT(getaddrinfo(node, service, &hints, &found) == 0);
    EXPECT(found->ai_family == family && found->ai_next == NULL);
    EXPECT(found->ai_socktype == SOCK_STREAM && found->ai_protocol == 6);
    const struct sockaddr_in *ipv4 = (const void *)found->ai_addr;
    const struct sockaddr_in6 *ipv6 = (const void *)found->ai_addr;
    const void *address = family == AF_INET ? (const void *)&ipv4->sin_addr : &ipv6->sin6_addr;
    EXPECT_TEXT(inet_ntop(family, address, text, sizeof(text)), wanted);
    EXPECT(ntohs(family == AF_INET ? ipv4->sin_port : ipv6->sin6_port) == port);
    EXPECT(found->ai_addr->sa_family == family);
    freeaddrinfo(found);
}

static void check_addresses(void) {
    check_address("192.0.2.7", "8080", AF_INET, "192.0.2.7", 8080);
    check_address("192.0.2.7", NULL, AF_INET, "192.0.2.7", 0);
    check_address("2001:db8::1", "443", AF_INET6, "2001:db8::1", 443);
    check_address("localhost", "1", AF_INET, "127.0.0.1", 1);
    check_address(NULL, "53", AF_INET, "127.0.0.1", 53);
}

static void check_errors(void) {
    char too_long[300];
    memset(too_long, 'a', sizeof(too_long) - 1);
    too_long[sizeof(too_long) - 1] = '\0';
    EXPECT(getaddrinfo("192.0.2.7", NULL, NULL, NULL) == EAI_FAIL);
    EXPECT(error_of(NULL, NULL, AF_INET, 0) == EAI_NONAME);
    EXPECT(error_of("192.0.2.7", NULL, AF_UNIX, 0) == EAI_FAMILY);
    EXPECT(error_of("192.0.2.7", "http", AF_INET, 0) == EAI_SERVICE);
    EXPECT(error_of("192.0.2.7", "65536", AF_INET, 0) == EAI_SERVICE);
    EXPECT(error_of("peer.hil.test", NULL, AF_INET, AI_NUMERICHOST) == EAI_NONAME);
    EXPECT(error_of("192.0.2.7", NULL, AF_INET6, AI_NUMERICHOST) == EAI_NONAME);
    EXPECT(error_of("peer.hil.test", NULL, AF_INET, 0) == EAI_FAIL); /* no server */
    EXPECT(error_of("", NULL, AF_INET, 0) == EAI_FAIL);
    EXPECT(error_of(too_long, NULL, AF_INET, 0) == EAI_FAIL);
    EXPECT(EAI_NONAME == 200 && EAI_SERVICE == 201 && EAI_FAIL == 202);
    EXPECT(EAI_MEMORY == 203 && EAI_FAMILY == 204);
}

static void check_servers(void) {
    ip_addr_t server;
    EXPECT(ipaddr_aton("192.0.2.53", &server) == 1 && ipaddr_aton("192.0.2", NULL) == 0);
    EXPECT(ipaddr_aton(NULL, &server) == 0);
    dns_setserver(1, &server);
    dns_setserver(DNS_MAX_SERVERS, &server); /* no such rank: nothing */
    EXPECT(dns_getserver(1)->u_addr.ip4.addr == inet_addr("192.0.2.53"));
    EXPECT(dns_getserver(0)->u_addr.ip4.addr == 0 && dns_getserver(DNS_MAX_SERVERS)->u_addr.ip4.addr == 0);
    dns_setserver(1, NULL);
    EXPECT(dns_getserver(1)->u_addr.ip4.addr == 0);
}

int main(void) {
    ESP_ERROR_CHECK(esp_timer_init());
    check_addresses();
    check_errors();
    check_servers();
    return 0;
}
