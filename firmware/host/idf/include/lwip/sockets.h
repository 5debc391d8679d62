/* SPDX-License-Identifier: Apache-2.0 */
/* BSD sockets under lwIP's header name: the host's types and constants, and calls that behave, where it
 * matters to a figure, as lwIP's with the values of sdkconfig.h (host/idf/lwip,
 * docs/explain/host-network.md). socket(), send(), close() and the others come to the lwip_… functions by the
 * linker, in every source of the build. */
#pragma once
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

/* TCP sockets take three options that lwIP has not at run time (a chip answers ENOPROTOOPT), and answer with
 * what is in force: SOL_SOCKET SO_RCVBUF, the receive window, 1152 to 65535 bytes; SO_SNDBUF, the send
 * buffer, 536 to 65535 bytes; IPPROTO_TCP TCP_MAXSEG before connect or listen, 88 to 1460 bytes. EINVAL
 * outside of that. */
int lwip_socket(int domain, int type, int protocol);
int lwip_bind(int s, const struct sockaddr *name, socklen_t namelen);
int lwip_listen(int s, int backlog);
int lwip_accept(int s, struct sockaddr *addr, socklen_t *addrlen);
int lwip_connect(int s, const struct sockaddr *name, socklen_t namelen);
int lwip_shutdown(int s, int how);
int lwip_close(int s);
int lwip_getpeername(int s, struct sockaddr *name, socklen_t *namelen);
int lwip_getsockname(int s, struct sockaddr *name, socklen_t *namelen);
int lwip_getsockopt(int s, int level, int optname, void *optval, socklen_t *optlen);
int lwip_setsockopt(int s, int level, int optname, const void *optval, socklen_t optlen);
ssize_t lwip_recv(int s, void *mem, size_t len, int flags);
ssize_t lwip_recvfrom(int s, void *mem, size_t len, int flags, struct sockaddr *from, socklen_t *fromlen);
ssize_t lwip_recvmsg(int s, struct msghdr *message, int flags);
ssize_t lwip_read(int s, void *mem, size_t len);
ssize_t lwip_readv(int s, const struct iovec *iov, int iovcnt);
ssize_t lwip_send(int s, const void *dataptr, size_t size, int flags);
ssize_t lwip_sendto(int s, const void *dataptr, size_t size, int flags, const struct sockaddr *to,
                    socklen_t tolen);
ssize_t lwip_sendmsg(int s, const struct msghdr *message, int flags);
ssize_t lwip_write(int s, const void *dataptr, size_t size);
ssize_t lwip_writev(int s, const struct iovec *iov, int iovcnt);
int lwip_select(int maxfdp1, fd_set *readset, fd_set *writeset, fd_set *exceptset, struct timeval *timeout);
int lwip_poll(struct pollfd *fds, nfds_t nfds, int timeout);
int lwip_ioctl(int s, long cmd, void *argp);
int lwip_fcntl(int s, int cmd, int val);
const char *lwip_inet_ntop(int af, const void *src, char *dst, socklen_t size);
int lwip_inet_pton(int af, const char *src, void *dst);

#ifdef __cplusplus
}
#endif

#define inet_ntoa_r(addr, buf, buflen) inet_ntop(AF_INET, &(addr), (buf), (socklen_t)(buflen))
#define inet6_ntoa_r(addr, buf, buflen) inet_ntop(AF_INET6, &(addr), (buf), (socklen_t)(buflen))

/* As in lwIP, another name for close(). */
#define closesocket(s) close(s)
