/* SPDX-License-Identifier: Apache-2.0 */
/* A DNS question over UDP and its answer; what is no answer to it is not looked at (RFC 1035, RFC 5452). */
#include <arpa/inet.h>
#include <arpa/nameser.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "resolver.h"

#define MESSAGE_BYTES 512

struct query {
    int fd; /* connected: the kernel hands on what comes from the server's address and port only */
    const char *name;
    uint8_t message[MESSAGE_BYTES];
    int length;
};

static int64_t now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* The transaction id and, chosen by the kernel, the source port are such as nobody can guess. */
static int write_question(query_t *query) {
    uint8_t *at = query->message;
    if (getrandom(at, NS_INT16SZ, 0) != NS_INT16SZ) {
        return -1;
    }
    at[2] = 0x01; /* recursion desired */
    at[5] = 1;    /* one question */
    at += NS_HFIXEDSZ;
    int name_bytes = ns_name_compress(query->name, at, MESSAGE_BYTES - NS_HFIXEDSZ - NS_QFIXEDSZ, NULL, NULL);
    if (name_bytes < 0) {
        return -1;
    }
    at += name_bytes;
    ns_put16(ns_t_a, at);
    ns_put16(ns_c_in, at + NS_INT16SZ);
    return NS_HFIXEDSZ + name_bytes + NS_QFIXEDSZ;
}

static int connect_to(struct in_addr server) {
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(NS_DEFAULTPORT), .sin_addr = server};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof address) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

query_t *query_open(const char *name, struct in_addr server) {
    query_t *query = calloc(1, sizeof *query);
    if (query == NULL) {
        return NULL;
    }
    query->name = name;
    query->length = write_question(query);
    query->fd = query->length > 0 ? connect_to(server) : -1;
    if (query->fd < 0) {
        free(query);
        return NULL;
    }
    return query;
}

void query_close(query_t *query) {
    close(query->fd);
    free(query);
}

static bool is_question(const query_t *query, ns_msg *answer) {
    ns_rr question;
    return ns_msg_id(*answer) == ns_get16(query->message) && ns_msg_getflag(*answer, ns_f_qr) == 1 &&
           ns_parserr(answer, ns_s_qd, 0, &question) == 0 && ns_rr_type(question) == ns_t_a &&
           strcasecmp(ns_rr_name(question), query->name) == 0;
}

/* The first address, whatever aliases lead to it. */
static bool find_address(ns_msg *answer, struct in_addr *address, uint32_t *ttl_s) {
    for (int i = 0; i < ns_msg_count(*answer, ns_s_an); i++) {
        ns_rr record;
        if (ns_parserr(answer, ns_s_an, i, &record) == 0 && ns_rr_type(record) == ns_t_a &&
            ns_rr_rdlen(record) == sizeof *address) {
            memcpy(address, ns_rr_rdata(record), sizeof *address);
            *ttl_s = ns_rr_ttl(record);
            return true;
        }
    }
    return false;
}

/* QUERY_NO_ANSWER: it was none, wait on. */
static query_result_t read_answer(const query_t *query, struct in_addr *address, uint32_t *ttl_s) {
    uint8_t bytes[MESSAGE_BYTES];
    ns_msg answer;
    ssize_t length = recv(query->fd, bytes, sizeof bytes, 0);
    if (length <= 0 || ns_initparse(bytes, (int)length, &answer) != 0 || !is_question(query, &answer)) {
        return QUERY_NO_ANSWER;
    }
    if (ns_msg_getflag(answer, ns_f_rcode) != ns_r_noerror) {
        return QUERY_ERROR;
    }
    return find_address(&answer, address, ttl_s) ? QUERY_FOUND : QUERY_NO_ADDRESS;
}

query_result_t query_ask(query_t *query, int wait_ms, struct in_addr *address, uint32_t *ttl_s) {
    int64_t deadline_ms = now_ms() + wait_ms;
    query_result_t result = QUERY_NO_ANSWER;
    /* A refusal (no server on that port) is an error here and nothing at all to lwIP: it waits on. */
    (void)send(query->fd, query->message, (size_t)query->length, 0);
    for (int64_t left_ms = wait_ms; left_ms > 0 && result == QUERY_NO_ANSWER;
         left_ms = deadline_ms - now_ms()) {
        struct pollfd answer = {.fd = query->fd, .events = POLLIN};
        if (poll(&answer, 1, (int)left_ms) > 0) {
            result = read_answer(query, address, ttl_s);
        }
    }
    return result;
}
