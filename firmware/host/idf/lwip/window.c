/* SPDX-License-Identifier: Apache-2.0 */
// Linux has no option for a window. It announces the least of a clamp (TCP_WINDOW_CLAMP) and of what is free
// of the receive buffer (SO_RCVBUF), in whole segments. The buffer is counted in memory: a frame costs its
// bytes and about 736 more. The share of payload in that memory is a guess at first, a half; newer kernels
// (6.18 is one) measure it with the first segment over 536 bytes, and then set the clamp to that share of the
// buffer, whatever it was set to. So both are set: the clamp to the window, the buffer so that its share is
// no less and, when it is measured, little more. The clamp is looked at after every read.
#include "window.h"

#include <netinet/in.h>
#include <netinet/tcp.h>

// What Linux takes for the segment size until one larger has come (TCP_MSS_DEFAULT).
#define MSS_UNMEASURED_BYTES 536
// truesize of a frame from a TAP device less its payload: headers, padding, sk_buff, skb_shared_info.
#define FRAME_COST_BYTES 736

static int set_buffer(int fd, int bytes) {
    return lwip_option_set(fd, SOL_SOCKET, SO_RCVBUF, (bytes + 1) / 2); // the kernel doubles it
}

static int set_clamp(int fd, const lwip_sock_t *sock) {
    return lwip_option_set(fd, IPPROTO_TCP, TCP_WINDOW_CLAMP, sock->window_bytes);
}

// Half of it is more than the window by the segment that Linux keeps in reserve; and a window of segments of
// this size fits.
static int unmeasured_buffer(const lwip_sock_t *sock, int segment_bytes) {
    int window = sock->window_bytes;
    int memory = (int)((int64_t)window * (segment_bytes + FRAME_COST_BYTES) / segment_bytes);
    return LARGER(2 * (window + sock->mss_bytes), memory);
}

// What gives the window with segments of the announced size, as soon as Linux has measured one; a little
// more, so that it shows whether it has.
static int expected_buffer(const lwip_sock_t *sock) {
    int mss = sock->mss_bytes;
    if (mss <= MSS_UNMEASURED_BYTES) {
        return unmeasured_buffer(sock, mss);
    }
    int share_of_256 = 256 * mss / (mss + FRAME_COST_BYTES);
    return sock->window_bytes * 256 / share_of_256 + 8;
}

// Until the peer has answered only the clamp counts: the buffer may be large, for a kernel that guesses less.
int lwip_window_open(int fd, lwip_sock_t *sock) {
    return set_buffer(fd, 2 * unmeasured_buffer(sock, sock->mss_bytes)) | set_clamp(fd, sock);
}

// A connection may bring a window of data before anyone accepts it. That must not open the window further, so
// the SYN is answered with about three quarters of it; but with two segments, as a peer halves a window to
// find its segment size.
int lwip_window_listen(int fd, lwip_sock_t *sock) {
    int two_segments = 2 * SMALLER(2 * sock->mss_bytes, sock->window_bytes);
    return set_buffer(fd, LARGER(expected_buffer(sock), two_segments)) | set_clamp(fd, sock);
}

void lwip_window_connected(int fd, lwip_sock_t *sock) {
    set_buffer(fd, expected_buffer(sock));
}

int lwip_window_change(int fd, lwip_sock_t *sock) {
    sock->window_settled = false;
    return set_buffer(fd, expected_buffer(sock)) | set_clamp(fd, sock);
}

static int segment_bytes(int fd) {
    struct tcp_info info = {0};
    socklen_t size = sizeof(info);
    __real_getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size);
    return info.tcpi_rcv_mss > 0 ? (int)info.tcpi_rcv_mss : MSS_UNMEASURED_BYTES;
}

static void keep_window(int fd, lwip_sock_t *sock) {
    int clamp = lwip_option_get(fd, IPPROTO_TCP, TCP_WINDOW_CLAMP);
    if (clamp <= 0 || (clamp == sock->window_bytes && sock->window_settled)) {
        return;
    }
    sock->window_settled = true;
    int segment = segment_bytes(fd);
    int bytes = unmeasured_buffer(sock, segment);
    if (segment > MSS_UNMEASURED_BYTES && clamp != sock->window_bytes) {
        // The clamp is the buffer's share of payload. Twice the window, else it would close a little with
        // each segment until that is read, and not open far enough again: Linux lets it grow by what is free
        // then.
        int64_t buffer = lwip_option_get(fd, SOL_SOCKET, SO_RCVBUF);
        bytes = (int)(2 * sock->window_bytes * buffer / clamp);
    }
    set_buffer(fd, bytes);
    set_clamp(fd, sock);
}

// lwIP's opt.h: TCP_WND_UPDATE_THRESHOLD.
static int update_threshold(const lwip_sock_t *sock) {
    return SMALLER(sock->window_bytes / 4, sock->mss_bytes * 4);
}

void lwip_window_read(int fd, lwip_sock_t *sock, ssize_t bytes) {
    if (bytes <= 0) {
        return;
    }
    keep_window(fd, sock);
    if (atomic_fetch_add(&sock->taken_bytes, (int)bytes) + bytes >= update_threshold(sock)) {
        sock->taken_bytes = 0;
        lwip_option_set(fd, IPPROTO_TCP, TCP_QUICKACK, 1);
    }
}
