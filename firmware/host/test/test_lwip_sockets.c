/* SPDX-License-Identifier: Apache-2.0 */
// lwIP's socket calls on the host: sizes, their ranges and what is in force; how many sockets there are; what
// an accepted one inherits.
#include "socket_rig.h"

static void sizes_are_those_of_sdkconfig_and_can_be_changed(void) {
    const struct {
        int level, option, otherwise, least, most;
    } sizes[] = {{SOL_SOCKET, SO_RCVBUF, CONFIG_LWIP_TCP_WND_DEFAULT, 1152, 65535},
                 {SOL_SOCKET, SO_SNDBUF, CONFIG_LWIP_TCP_SND_BUF_DEFAULT, 536, 65535},
                 {IPPROTO_TCP, TCP_MAXSEG, CONFIG_LWIP_TCP_MSS, 88, 1460}};
    int fd = tcp();
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        int level = sizes[i].level, option = sizes[i].option;
        CHECK_EQUAL(get(fd, level, option), sizes[i].otherwise);
        CHECK_EQUAL(set(fd, level, option, sizes[i].least - 1), EINVAL);
        CHECK_EQUAL(set(fd, level, option, sizes[i].most + 1), EINVAL);
        CHECK_EQUAL(get(fd, level, option), sizes[i].otherwise);
        CHECK_EQUAL(set(fd, level, option, sizes[i].most), 0);
        CHECK_EQUAL(get(fd, level, option), sizes[i].most);
        CHECK_EQUAL(set(fd, level, option, sizes[i].least), 0);
        CHECK_EQUAL(get(fd, level, option), sizes[i].least);
    }
    close(fd);
}

static void a_segment_size_is_agreed_on_once(void) {
    pair_t p = connection();
    CHECK_EQUAL(set(p.here, IPPROTO_TCP, TCP_MAXSEG, 536), EISCONN);
    CHECK(get(p.here, IPPROTO_TCP, TCP_MAXSEG) <= CONFIG_LWIP_TCP_MSS);
    CHECK_EQUAL(set(p.here, SOL_SOCKET, SO_RCVBUF, 23040), 0);
    CHECK_EQUAL(get(p.here, SOL_SOCKET, SO_RCVBUF), 23040);
    end(p);
}

static void there_are_so_many_sockets(void) {
    int fds[CONFIG_LWIP_MAX_SOCKETS];
    for (int i = 0; i < CONFIG_LWIP_MAX_SOCKETS; i++) {
        fds[i] = tcp();
    }
    CHECK_EQUAL(socket(AF_INET, SOCK_DGRAM, 0), -1);
    CHECK_EQUAL(errno, ENFILE);
    for (int i = 0; i < CONFIG_LWIP_MAX_SOCKETS; i++) {
        CHECK_EQUAL(close(fds[i]), 0);
    }
    close(tcp());
}

static void one_connection_too_many_is_closed(void) {
    int listener = tcp(), fds[CONFIG_LWIP_MAX_SOCKETS - 1];
    bind_loopback(listener);
    CHECK_EQUAL(listen(listener, 1), 0);
    for (int i = 0; i < CONFIG_LWIP_MAX_SOCKETS - 1; i++) {
        fds[i] = tcp();
    }
    CHECK_EQUAL(connect_to(fds[0], listener), 0);
    CHECK_EQUAL(accept(listener, NULL, NULL), -1);
    CHECK_EQUAL(errno, ENFILE);
    char byte;
    CHECK_EQUAL(recv(fds[0], &byte, 1, 0), 0);
    for (int i = 0; i < CONFIG_LWIP_MAX_SOCKETS - 1; i++) {
        close(fds[i]);
    }
    close(listener);
}

static void descriptors_go_where_they_belong(void) {
    int ends[2];
    char byte = 'x';
    CHECK_EQUAL(pipe(ends), 0);
    CHECK_EQUAL(write(ends[1], &byte, 1), 1);
    CHECK_EQUAL(lwip_recv(ends[0], &byte, 1, 0), -1);
    CHECK_EQUAL(errno, EBADF);
    CHECK_EQUAL(read(ends[0], &byte, 1), 1);
    int fd = tcp();
    CHECK_EQUAL(close(fd), 0);
    CHECK_EQUAL(lwip_close(fd), -1);
    CHECK_EQUAL(errno, EBADF);
    CHECK_EQUAL(close(ends[0]) | close(ends[1]), 0);
}

static void accepted_sockets_inherit_sizes_only(void) {
    const struct timeval second = {.tv_sec = 1};
    struct timeval timeout;
    socklen_t size = sizeof(timeout);
    int listener = tcp(), client = tcp();
    CHECK_EQUAL(set(listener, SOL_SOCKET, SO_RCVBUF, 11520), 0);
    CHECK_EQUAL(set(listener, SOL_SOCKET, SO_SNDBUF, 2920), 0);
    CHECK_EQUAL(set(listener, IPPROTO_TCP, TCP_NODELAY, 1), 0);
    CHECK_EQUAL(setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof(second)), 0);
    bind_loopback(listener);
    CHECK_EQUAL(listen(listener, 1), 0);
    CHECK_EQUAL(connect_to(client, listener), 0);
    int accepted = accept(listener, NULL, NULL);
    CHECK_EQUAL(get(accepted, SOL_SOCKET, SO_RCVBUF), 11520);
    CHECK_EQUAL(get(accepted, SOL_SOCKET, SO_SNDBUF), 2920);
    CHECK_EQUAL(get(accepted, IPPROTO_TCP, TCP_NODELAY), 0);
    CHECK_EQUAL(getsockopt(accepted, SOL_SOCKET, SO_RCVTIMEO, &timeout, &size), 0);
    CHECK_EQUAL(timeout.tv_sec, 0);
    close(accepted);
    close(client);
    close(listener);
}

static void datagrams_stay_apart(void) {
    int a = socket(AF_INET, SOCK_DGRAM, 0), b = socket(AF_INET, SOCK_DGRAM, 0);
    char data[16];
    struct sockaddr_in from;
    socklen_t size = sizeof(from);
    bind_loopback(a);
    bind_loopback(b);
    struct sockaddr_in to = address_of(b);
    CHECK_EQUAL(sendto(a, "one", 3, 0, (struct sockaddr *)&to, sizeof(to)), 3);
    CHECK_EQUAL(sendto(a, "four", 4, 0, (struct sockaddr *)&to, sizeof(to)), 4);
    CHECK_EQUAL(recvfrom(b, data, sizeof(data), 0, (struct sockaddr *)&from, &size), 3);
    CHECK_EQUAL(from.sin_port, address_of(a).sin_port);
    CHECK_EQUAL(read(b, data, sizeof(data)), 4);
    CHECK_EQUAL(set(b, SOL_SOCKET, SO_RCVBUF, 30000), 0);
    CHECK_EQUAL(get(b, SOL_SOCKET, SO_RCVBUF), 30000);
    close(a);
    close(b);
}

int main(void) {
    sizes_are_those_of_sdkconfig_and_can_be_changed();
    a_segment_size_is_agreed_on_once();
    there_are_so_many_sockets();
    one_connection_too_many_is_closed();
    descriptors_go_where_they_belong();
    accepted_sockets_inherit_sizes_only();
    datagrams_stay_apart();
    return 0;
}
