/* SPDX-License-Identifier: Apache-2.0 */
#include "tap.h"

#include <err.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static int enter(const char *netns_path) {
    int home_fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    int netns_fd = open(netns_path, O_RDONLY | O_CLOEXEC);
    if (home_fd < 0 || netns_fd < 0 || setns(netns_fd, CLONE_NEWNET) != 0) {
        err(3, "entering the network namespace %s", netns_path);
    }
    close(netns_fd);
    return home_fd;
}

static void leave(int home_fd) {
    if (setns(home_fd, CLONE_NEWNET) != 0) {
        err(3, "returning to the rack's network namespace");
    }
    close(home_fd);
}

int tap_open(const char *netns_path, const char *device) {
    int home_fd = netns_path[0] != '\0' ? enter(netns_path) : -1;
    int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        err(3, "opening /dev/net/tun");
    }
    /* No IFF_VNET_HDR: the kernel then hands over real frames, never GSO super-frames. */
    struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI};
    strncpy(request.ifr_name, device, IFNAMSIZ - 1);
    if (ioctl(fd, TUNSETIFF, &request) != 0) {
        err(3, "creating the TAP device %s", device);
    }
    if (home_fd >= 0) {
        leave(home_fd);
    }
    return fd;
}
