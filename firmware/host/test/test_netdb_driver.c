/* SPDX-License-Identifier: Apache-2.0 */
/* lwip/netdb.h driven line by line from stdin by tests/firmware/test_host_netdb.py:
 *
 *   server RANK ADDRESS | resolve NAME */
#include <arpa/inet.h>

#include "esp_timer.h"
#include "expect.h"
#include "lwip/dns.h"
#include "lwip/netdb.h"

static void do_server(const char *arguments) {
    int rank = 0;
    char text[32] = "";
    ip_addr_t server;
    sscanf(arguments, "%d %31s", &rank, text);
    EXPECT(ipaddr_aton(text, &server) == 1);
    dns_setserver((u8_t)rank, &server);
}

static void do_resolve(const char *name) {
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    char text[INET_ADDRSTRLEN] = "none";
    int error = getaddrinfo(name, NULL, &hints, &found);
    if (error == 0) {
        const struct sockaddr_in *address = (const void *)found->ai_addr;
        inet_ntop(AF_INET, &address->sin_addr, text, sizeof(text));
    }
    freeaddrinfo(found);
    printf("resolve %d address=%s\n", error, text);
}

int main(void) {
    char line[512];
    setvbuf(stdout, NULL, _IOLBF, 0);
    ESP_ERROR_CHECK(esp_timer_init());
    while (fgets(line, sizeof(line), stdin) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, "server ", 7) == 0) {
            do_server(line + 7);
        } else if (strncmp(line, "resolve ", 8) == 0) {
            do_resolve(line + 8);
        }
    }
    return 0;
}
