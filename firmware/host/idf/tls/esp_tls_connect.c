/* SPDX-License-Identifier: Apache-2.0 */
// From a name to a TCP connection: tcp_connect() of ESP-IDF's esp_tls.c.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "esp_log.h"
#include "esp_tls_priv.h"
#include "lwip/netdb.h"
#include "lwip/sockets.h"
#include "tls_error.h"

#define DEFAULT_TIMEOUT_MS 10000

static const char *TAG = "esp-tls";

typedef struct {
    struct sockaddr_storage storage;
    socklen_t length;
} address_t;

struct timeval esp_tls_timeval(int timeout_ms) {
    return (struct timeval){.tv_sec = timeout_ms / 1000, .tv_usec = (timeout_ms % 1000) * 1000};
}

static int timeout_of(const esp_tls_cfg_t *cfg) {
    return cfg != NULL && cfg->timeout_ms > 0 ? cfg->timeout_ms : DEFAULT_TIMEOUT_MS;
}

static int family_of(const esp_tls_cfg_t *cfg) {
    static const int families[] = {AF_UNSPEC, AF_INET, AF_INET6};
    return cfg == NULL ? AF_UNSPEC : families[cfg->addr_family];
}

static esp_err_t copy_address(const struct addrinfo *found, int port, address_t *address) {
    if (found->ai_family == AF_INET) {
        struct sockaddr_in *ipv4 = (struct sockaddr_in *)&address->storage;
        memcpy(ipv4, found->ai_addr, sizeof(*ipv4));
        ipv4->sin_port = htons((uint16_t)port);
        address->length = sizeof(*ipv4);
        return ESP_OK;
    }
    if (found->ai_family == AF_INET6) {
        struct sockaddr_in6 *ipv6 = (struct sockaddr_in6 *)&address->storage;
        memcpy(ipv6, found->ai_addr, sizeof(*ipv6));
        ipv6->sin6_port = htons((uint16_t)port);
        address->length = sizeof(*ipv6);
        return ESP_OK;
    }
    return ESP_ERR_ESP_TLS_UNSUPPORTED_PROTOCOL_FAMILY;
}

// Resolves and makes the socket; as in ESP-IDF the first address only.
static esp_err_t resolve(const char *host, int hostlen, int port, int family, address_t *address, int *fd) {
    const struct addrinfo hints = {.ai_family = family, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    char *name = strndup(host, (size_t)hostlen);
    if (name == NULL) {
        return ESP_ERR_NO_MEM;
    }
    int failed = lwip_getaddrinfo(name, NULL, &hints, &found);
    if (failed != 0) {
        ESP_LOGE(TAG, "couldn't get hostname for :%s: getaddrinfo() returns %d", name, failed);
    }
    free(name);
    if (failed != 0) {
        return ESP_ERR_ESP_TLS_CANNOT_RESOLVE_HOSTNAME;
    }
    esp_err_t err = copy_address(found, port, address);
    if (err == ESP_OK) {
        *fd = socket(found->ai_family, found->ai_socktype, found->ai_protocol);
        err = *fd < 0 ? ESP_ERR_ESP_TLS_CANNOT_CREATE_SOCKET : ESP_OK;
    }
    lwip_freeaddrinfo(found);
    return err;
}

static esp_err_t set_non_blocking(int fd, bool non_blocking) {
    int flags = fcntl(fd, F_GETFL, 0);
    if (flags < 0) {
        return ESP_ERR_ESP_TLS_SOCKET_SETOPT_FAILED;
    }
    flags = non_blocking ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
    return fcntl(fd, F_SETFL, flags) < 0 ? ESP_ERR_ESP_TLS_SOCKET_SETOPT_FAILED : ESP_OK;
}

static bool keep_alive(int fd, const tls_keep_alive_cfg_t *cfg) {
    const int enable = 1;
    return setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &enable, sizeof(enable)) == 0 &&
           setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &cfg->keep_alive_idle, sizeof(int)) == 0 &&
           setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &cfg->keep_alive_interval, sizeof(int)) == 0 &&
           setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &cfg->keep_alive_count, sizeof(int)) == 0;
}

static esp_err_t set_options(int fd, const esp_tls_cfg_t *cfg) {
    struct timeval tv = esp_tls_timeval(timeout_of(cfg));
    if (cfg != NULL && (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)) != 0 ||
                        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)) != 0)) {
        return ESP_ERR_ESP_TLS_SOCKET_SETOPT_FAILED;
    }
    if (cfg != NULL && cfg->keep_alive_cfg != NULL && cfg->keep_alive_cfg->keep_alive_enable &&
        !keep_alive(fd, cfg->keep_alive_cfg)) {
        return ESP_ERR_ESP_TLS_SOCKET_SETOPT_FAILED;
    }
    return set_non_blocking(fd, true);
}

static esp_err_t refused(int sock_errno, esp_tls_error_handle_t error) {
    tls_error_capture(error, ESP_TLS_ERR_TYPE_SYSTEM, sock_errno);
    ESP_LOGE(TAG, "delayed connect error: %s", strerror(sock_errno));
    return ESP_ERR_ESP_TLS_FAILED_CONNECT_TO_HOST;
}

static esp_err_t wait_until_connected(int fd, int timeout_ms, esp_tls_error_handle_t error) {
    struct timeval tv = esp_tls_timeval(timeout_ms);
    fd_set writable;
    FD_ZERO(&writable);
    FD_SET(fd, &writable);
    int ready = select(fd + 1, NULL, &writable, NULL, &tv);
    if (ready < 0) {
        return refused(errno, error);
    }
    if (ready == 0) {
        ESP_LOGE(TAG, "[sock=%d] select() timeout", fd);
        return ESP_ERR_ESP_TLS_CONNECTION_TIMEOUT;
    }
    int sock_errno = 0;
    socklen_t length = sizeof(sock_errno);
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &sock_errno, &length) < 0) {
        return ESP_ERR_ESP_TLS_SOCKET_SETOPT_FAILED;
    }
    return sock_errno != 0 ? refused(sock_errno, error) : ESP_OK;
}

static esp_err_t connect_fd(int fd, const address_t *address, const esp_tls_cfg_t *cfg,
                            esp_tls_error_handle_t error) {
    esp_err_t err = set_options(fd, cfg);
    if (err != ESP_OK) {
        return err;
    }
    bool stays_non_blocking = cfg == NULL || cfg->non_block;
    if (connect(fd, (const struct sockaddr *)&address->storage, address->length) < 0) {
        if (errno != EINPROGRESS) {
            return ESP_ERR_ESP_TLS_FAILED_CONNECT_TO_HOST; // only errno tells why, as in ESP-IDF: no route,
                                                           // say
        }
        if (cfg != NULL && cfg->non_block) {
            return ESP_OK;
        }
        err = wait_until_connected(fd, timeout_of(cfg), error);
    }
    return err == ESP_OK && !stays_non_blocking ? set_non_blocking(fd, false) : err;
}

esp_err_t esp_tls_plain_tcp_connect(const char *host, int hostlen, int port, const esp_tls_cfg_t *cfg,
                                    esp_tls_error_handle_t error_handle, int *sockfd) {
    if (sockfd == NULL || error_handle == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    address_t address;
    int fd = -1;
    memset(&address, 0, sizeof(address));
    esp_err_t err = resolve(host, hostlen, port, family_of(cfg), &address, &fd);
    if (err != ESP_OK) {
        tls_error_capture(error_handle, ESP_TLS_ERR_TYPE_SYSTEM, errno);
        return err;
    }
    err = connect_fd(fd, &address, cfg, error_handle);
    if (err != ESP_OK) {
        close(fd);
        return err;
    }
    *sockfd = fd;
    return ESP_OK;
}
